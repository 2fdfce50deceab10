import { Draft } from "../draft.js";
import { ONLY_TOUCH, sends } from "../keyboard.js";
import { parts, setText } from "../page.js";
import { tabStorage } from "../tab-storage.js";
import { uuid } from "../uuid.js";

const PLACEHOLDER = "Ask all of them something…";

/**
 * Where a prompt is written and its panes are chosen. What is typed is kept until the server has
 * taken it. Dispatches `stop-all`.
 */
export class ChatComposer extends HTMLElement {
  #parts;
  #draft;
  #send = null;
  #sending = false;
  // It may come and go: a tablet is put onto its keyboard.
  #touch = matchMedia(ONLY_TOUCH);
  #live = 0;

  connectedCallback() {
    this.#parts = parts(this);
    this.#draft = new Draft(tabStorage(), this.dataset.draft);
    const { form, prompt, stopAll, picker } = this.#parts;
    prompt.value = this.#draft.prompt || prompt.value;
    prompt.addEventListener("input", () => this.#edited({ prompt: prompt.value }));
    prompt.addEventListener("keydown", (event) => this.#pressed(event));
    picker.addEventListener("panes-change", ({ detail }) => this.#edited({ panes: detail.panes }));
    this.#touch.addEventListener("change", () => this.#nameEnter());
    this.#nameEnter();
    form.addEventListener("submit", (event) => this.#submit(event));
    stopAll.addEventListener("click", () => this.#stopAll());
  }

  /**
   * Start with a catalogue, the panes of the conversation, and the way to send.
   *
   * @param {import("../catalogue.js").Catalogue} catalogue
   * @param {object[]} panes  empty in a new conversation
   * @param {(draft: {prompt: string, panes: object[], key: string}) => Promise<void>} send
   */
  begin(catalogue, panes, send) {
    const chosen = this.#draft.panes ?? (panes.length > 0 ? panes : catalogue.defaultPanes(uuid));
    this.#parts.picker.show(catalogue, chosen);
    this.#send = send;
    this.#refresh();
  }

  /** Put a prompt into the field, as if it had been typed. */
  suggest(text) {
    this.#parts.prompt.value = text;
    this.#edited({ prompt: text });
    this.#parts.prompt.focus();
  }

  /** A new turn waits until every answer of the newest has ended. */
  showLive(count) {
    if (count === this.#live) return;
    this.#live = count;
    // What was said of running answers has become untrue.
    if (count === 0) this.showProblem("");
    this.#refresh();
  }

  showProblem(text) {
    setText(this.#parts.problem, text);
    this.#parts.problem.hidden = text === "";
    if (text) document.querySelector("live-announcer").say(text);
  }

  /** Take back what was said, if nothing else has been said since. */
  withdraw(text) {
    if (this.#parts.problem.textContent === text) this.showProblem("");
  }

  #edited(change) {
    this.#draft.edit(change);
    this.showProblem("");
    this.#refresh();
  }

  /** A keyboard on the screen shows what its Enter does. */
  #nameEnter() {
    this.#parts.prompt.enterKeyHint = this.#touch.matches ? "enter" : "send";
  }

  #pressed(event) {
    if (!sends(event, this.#touch.matches)) return;
    event.preventDefault();
    this.#parts.form.requestSubmit();
  }

  /** Why sending has to wait, or "" when it doesn't. */
  get #obstacle() {
    if (this.#sending) return "Sending…";
    if (this.#live > 0) return this.#live === 1 ? "1 answer is still coming" : `${this.#live} answers are still coming`;
    if (this.#parts.picker.panes.length === 0) return "No model can be used: ask whoever runs this server to set one up";
    return "";
  }

  async #submit(event) {
    event.preventDefault();
    const { prompt, picker } = this.#parts;
    if (this.#sending || prompt.value.trim() === "") return;
    if (this.#obstacle) {
      this.showProblem(`${this.#obstacle}.`);
      return;
    }
    const draft = { prompt: prompt.value, panes: picker.panes, key: this.#draft.seal(uuid) };
    this.#sending = true;
    this.#refresh();
    await this.#send(draft).then(
      () => this.#accepted(draft.prompt),
      (problem) => this.showProblem(problem.message),
    );
    this.#sending = false;
    this.#refresh();
  }

  /** What was typed while the prompt was on its way is the next draft. */
  #accepted(sent) {
    const { prompt } = this.#parts;
    if (prompt.value === sent) prompt.value = "";
    this.#draft.clear();
    if (prompt.value) this.#draft.edit({ prompt: prompt.value });
    this.showProblem("");
  }

  #stopAll() {
    this.dispatchEvent(new CustomEvent("stop-all", { bubbles: true }));
    this.#parts.prompt.focus();
  }

  #refresh() {
    const { submit, stopAll, hint, prompt } = this.#parts;
    const obstacle = this.#obstacle;
    setText(hint, obstacle);
    prompt.placeholder = obstacle || PLACEHOLDER;
    submit.title = obstacle;
    // Not `disabled`: that would drop the focus and hide the reason from screen readers.
    submit.setAttribute("aria-disabled", String(obstacle !== "" || prompt.value.trim() === ""));
    stopAll.toggleAttribute("data-idle", this.#live === 0);
    stopAll.disabled = this.#live === 0 && document.activeElement !== stopAll;
  }
}
