import { copyText } from "../clipboard.js";
import { Follow } from "../follow.js";
import { metrics, stateText, timingRows } from "../format.js";
import { noticeOf } from "../notices.js";
import { cloneTemplate, parts, setText } from "../page.js";
import { isLive } from "../protocol.js";

const measureOf = ({ scrollTop, scrollHeight, clientHeight }) =>
  ({ top: scrollTop, height: scrollHeight, viewport: clientHeight });

const COPIED_MS = 2000;

/**
 * One generation: header, answer and what became of it.
 *
 * Painting is in three steps, so that a page of panes lays out once a frame: every pane is
 * measured, then every pane is painted, then every pane that follows is put to its end.
 *
 * Dispatches `generation-cancel` {gen} and `say` {text}.
 */
export class ChatPane extends HTMLElement {
  #parts = null;
  #follow = new Follow();
  #snapshot = null;
  #name = "";
  #askedAt = null;
  #cancelling = false;
  #toolsPainted = null;

  connectedCallback() {
    if (this.#parts) return;
    const content = cloneTemplate("pane-template");
    this.#parts = parts(content);
    this.append(content);
    this.#listen();
  }

  /** @param {{label: string, name: string, number: number, askedAt: number|null}} identity */
  introduce({ label, name, number, askedAt }) {
    this.#parts.label.textContent = label;
    this.#parts.label.title = label;
    this.#parts.number.textContent = number;
    this.dataset.hue = ((number - 1) % 8) + 1;
    this.setAttribute("aria-label", `${name}, answer`);
    this.#parts.scroller.setAttribute("aria-label", `Text of ${name}`);
    this.#parts.copy.setAttribute("aria-label", `Copy the answer of ${name}`);
    this.#name = name;
    this.#askedAt = askedAt;
  }

  /** The model's label, made distinct from the other panes of the turn. */
  get name() {
    return this.#name;
  }

  /** True while a selection keeps newer blocks from being shown. */
  get held() {
    return this.#parts.answer.held;
  }

  measure() {
    this.#follow.beforeGrowth(measureOf(this.#parts.scroller));
  }

  paint(snapshot, pace) {
    this.#snapshot = snapshot;
    this.dataset.state = snapshot.state;
    this.#paintHeader(snapshot, pace);
    this.#paintReasoning(snapshot);
    this.#paintTools(snapshot);
    this.#parts.answer.paint(snapshot);
    this.#paintNotice(snapshot);
  }

  park() {
    const { scroller, jump } = this.#parts;
    if (this.#follow.following) scroller.scrollTop = scroller.scrollHeight;
    this.#follow.parked(measureOf(scroller));
    jump.hidden = this.#follow.following;
  }

  /** Ask for this generation to be stopped, once. */
  cancel() {
    if (this.#cancelling || !isLive(this.#snapshot.state)) return;
    this.#cancelling = true;
    this.#paintStop(this.#snapshot);
    this.#dispatch("generation-cancel", { gen: this.#snapshot.gen });
  }

  /** Say that the cancel request did not get through. */
  cancelFailed() {
    this.#cancelling = false;
    this.#paintStop(this.#snapshot);
  }

  // Header

  #paintHeader(snapshot, pace) {
    const { state, firstToken, tokens, rate, copy, timings } = this.#parts;
    const numbers = metrics(snapshot, pace, this.#askedAt);
    setText(state, stateText(snapshot));
    setText(firstToken, numbers.firstToken);
    setText(tokens, numbers.tokens);
    setText(rate, numbers.rate);
    copy.disabled = snapshot.text === "";
    this.#paintStop(snapshot);
    if (timings.open) this.#paintTimings();
  }

  /** A button that has the focus stays when it loses its use, or the focus would fall to the body. */
  #paintStop({ state }) {
    const { stop } = this.#parts;
    const live = isLive(state);
    stop.setAttribute("aria-disabled", String(!live || this.#cancelling));
    setText(stop, this.#cancelling && live ? "Stopping…" : "Stop");
    stop.setAttribute("aria-label", `${stop.textContent} ${this.#name}`);
    stop.hidden = !live && document.activeElement !== stop;
  }

  #paintTimings() {
    const rows = timingRows(this.#snapshot);
    const cells = rows.flatMap(([name, value]) => [cell("dt", name), cell("dd", value)]);
    const fallback = cell("dd", "The server’s measurements come when the answer ends.");
    this.#parts.rows.replaceChildren(...(cells.length > 0 ? cells : [fallback]));
  }

  // Content

  #paintReasoning({ reasoning }) {
    const { reasoning: fold, reasoningText } = this.#parts;
    fold.hidden = reasoning === "";
    const painted = reasoningText.firstChild ?? reasoningText.appendChild(document.createTextNode(""));
    if (reasoning.startsWith(painted.data)) painted.appendData(reasoning.slice(painted.length));
    else painted.data = reasoning;
  }

  #paintTools({ tools }) {
    if (tools === this.#toolsPainted) return;
    this.#toolsPainted = tools;
    this.#parts.tools.hidden = tools.length === 0;
    this.#parts.tools.replaceChildren(...tools.map(toolItem));
  }

  #paintNotice(snapshot) {
    const { notice, noticeTitle, noticeText } = this.#parts;
    const said = noticeOf(snapshot);
    notice.hidden = said === null;
    setText(noticeTitle, said?.title ?? "");
    setText(noticeText, said?.text ?? "");
  }

  // Actions

  #listen() {
    const { scroller, stop, jump, copy, reasoning, timings } = this.#parts;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#letGo(), { passive: true });
    // Opening the fold must not carry away what was clicked; what fits after all is followed again.
    reasoning.addEventListener("click", () => this.#follow.release());
    reasoning.addEventListener("toggle", () => this.#scrolled());
    scroller.addEventListener("click", (event) => this.#copyCode(event));
    jump.addEventListener("click", () => this.#jump());
    stop.addEventListener("click", () => this.cancel());
    copy.addEventListener("click", () => this.#copy(copy, this.#snapshot.text));
    stop.addEventListener("blur", () => this.#paintStop(this.#snapshot));
    timings.addEventListener("toggle", () => this.#paintTimings());
  }

  #scrolled() {
    this.#follow.scrolled(measureOf(this.#parts.scroller));
    this.#parts.jump.hidden = this.#follow.following;
  }

  #letGo() {
    const { scrollHeight, clientHeight } = this.#parts.scroller;
    if (scrollHeight > clientHeight) this.#follow.release();
  }

  #jump() {
    this.#follow.resume();
    this.park();
    this.#parts.scroller.focus({ preventScroll: true });
  }

  #copyCode({ target }) {
    const button = target.closest("[data-action=copy-code]");
    if (!button) return;
    const code = button.closest(".answer__block").querySelector("pre").textContent;
    // A line end at the end would run the last command on paste.
    this.#copy(button, code.replace(/\n$/u, ""));
  }

  async #copy(button, text) {
    const done = await copyText(text);
    button.toggleAttribute("data-copied", done);
    this.#dispatch("say", { text: done ? "Copied." : "The browser refused to copy." });
    setTimeout(() => button.removeAttribute("data-copied"), COPIED_MS);
  }

  #dispatch(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
  }
}

function cell(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

const OUTCOMES = { succeeded: "Result", failed: "Failed", rejected: "Rejected", unknown: "Outcome unknown" };

function toolItem({ name, arguments: args, complete, outcome, result }) {
  const item = cell("li", "");
  item.className = "tool";
  const title = cell("p", `${complete ? "Tool call" : "Tool call, still coming"}: ${name || "…"}`);
  title.className = "tool__title";
  item.append(title, cell("pre", args));
  if (outcome) item.append(cell("p", OUTCOMES[outcome] ?? outcome), cell("pre", result ?? ""));
  return item;
}
