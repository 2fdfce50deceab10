import { setText } from "../page.js";
import { isLive } from "../protocol.js";

/**
 * A pane's Stop button. It says "Stopping…" from the click until the server has answered it, and from
 * then on as long as the generation's state says that it was asked to stop.
 */
export class StopButton {
  #button;
  #name = "";
  #snapshot = null;
  #isAsking = false;

  /** @param {() => void} ask  called once for each wish to stop */
  constructor(button, ask) {
    this.#button = button;
    button.addEventListener("click", () => this.expectStop() && ask());
    button.addEventListener("blur", () => this.#paint());
  }

  paint(snapshot, name) {
    this.#snapshot = snapshot;
    this.#name = name;
    this.#paint();
  }

  /** Show that this generation is to be stopped. Says false when that is so already, or it has ended. */
  expectStop() {
    if (this.#isStopping || !isLive(this.#snapshot.state)) return false;
    this.#isAsking = true;
    this.#paint();
    return true;
  }

  /** The server has answered, or cannot be reached: the next painting shows what the state says. */
  stopAnswered() {
    this.#isAsking = false;
  }

  focus() {
    this.#button.focus();
  }

  get #isStopping() {
    return this.#isAsking || this.#snapshot.cancel_requested !== null;
  }

  /** A button that has the focus stays when it loses its use, or the focus would fall to the body. */
  #paint() {
    const live = isLive(this.#snapshot.state);
    this.#button.setAttribute("aria-disabled", String(!live || this.#isStopping));
    setText(this.#button, this.#isStopping && live ? "Stopping…" : "Stop");
    this.#button.setAttribute("aria-label", `${this.#button.textContent} ${this.#name}`);
    this.#button.hidden = !live && document.activeElement !== this.#button;
  }
}
