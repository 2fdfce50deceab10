import { canContinue, isCut } from "../again.js";
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
 * Dispatches `generation-cancel` {gen}, `generation-again` {gen, kind}, `answer-show` {gen, step} and
 * `say` {text}.
 */
export class ChatPane extends HTMLElement {
  #parts = null;
  #follow = new Follow();
  #snapshot = null;
  #name = "";
  #askedAt = null;
  #cancelling = false;
  #asking = false;
  #answers = [];
  #canAskAgain = false;
  #toolsPainted = null;
  #continuedPainted = "";

  connectedCallback() {
    if (this.#parts) return;
    const content = cloneTemplate("pane-template");
    this.#parts = parts(content);
    this.append(content);
    this.#listen();
  }

  /**
   * @param {object} identity
   * @param {string} identity.label
   * @param {string} identity.name
   * @param {number} identity.number      of the pane
   * @param {number|null} identity.askedAt
   * @param {string[]} identity.gens      all answers of the pane to this prompt, the shown one among them
   * @param {string} identity.gen         the shown one
   * @param {boolean} identity.canAskAgain  whether another answer may follow it
   */
  introduce({ label, name, number, askedAt, gens, gen, canAskAgain }) {
    this.#parts.label.textContent = label;
    this.#parts.label.title = label;
    this.#parts.number.textContent = number;
    this.dataset.hue = ((number - 1) % 8) + 1;
    this.setAttribute("aria-label", `${name}, answer`);
    this.#parts.scroller.setAttribute("aria-label", `Text of ${name}`);
    this.#parts.copy.setAttribute("aria-label", `Copy the answer of ${name}`);
    this.#name = name;
    this.#askedAt = askedAt;
    this.#canAskAgain = canAskAgain;
    this.#paintPager(gens, gen);
    if (this.#snapshot) this.#paintAgain(this.#snapshot);
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

  /** @param {object[]} continued  the answers that this one goes on from, oldest first */
  paint(snapshot, pace, continued) {
    this.#snapshot = snapshot;
    this.dataset.state = snapshot.state;
    this.#paintHeader(snapshot, pace);
    this.#paintReasoning(snapshot);
    this.#paintTools(snapshot);
    this.#paintContinued(continued);
    this.#parts.answer.paint(snapshot);
    this.#paintNotice(snapshot);
    this.#paintAgain(snapshot);
  }

  park() {
    const { scroller, jump } = this.#parts;
    if (this.#follow.following) scroller.scrollTop = scroller.scrollHeight;
    this.#follow.parked(measureOf(scroller));
    jump.hidden = this.#follow.following;
  }

  /** Show that this generation is to be stopped. Says false when that is so already, or it has ended. */
  expectStop() {
    if (this.#isStopping || !isLive(this.#snapshot.state)) return false;
    this.#cancelling = true;
    this.#paintStop(this.#snapshot);
    return true;
  }

  /** Say that the cancel request did not get through. */
  cancelFailed() {
    this.#cancelling = false;
    this.#paintStop(this.#snapshot);
  }

  /** Say that the request for another answer did not get through. */
  askingFailed() {
    this.#asking = false;
    this.#paintAgain(this.#snapshot);
  }

  focusStop() {
    this.#parts.stop.focus();
  }

  /** Put the focus where it was before this pane took another's place. */
  focusPager(step) {
    const { older, newer } = this.#parts;
    const wanted = step < 0 ? older : newer;
    (wanted.disabled ? (step < 0 ? newer : older) : wanted).focus();
  }

  get #isStopping() {
    return this.#cancelling || this.#snapshot.cancel_requested !== null;
  }

  // Header

  #paintPager(gens, gen) {
    const { pager, older, newer, which } = this.#parts;
    const at = gens.indexOf(gen);
    this.#answers = gens;
    pager.hidden = gens.length < 2;
    older.disabled = at === 0;
    newer.disabled = at === gens.length - 1;
    setText(which, `${at + 1} of ${gens.length}`);
    pager.setAttribute("aria-label", `Answers of ${this.#name}`);
  }

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
    stop.setAttribute("aria-disabled", String(!live || this.#isStopping));
    setText(stop, this.#isStopping && live ? "Stopping…" : "Stop");
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

  #paintContinued(continued) {
    const painted = continued.map(({ gen }) => gen).join(" ");
    if (painted === this.#continuedPainted) return;
    this.#continuedPainted = painted;
    const { continued: place } = this.#parts;
    place.hidden = continued.length === 0;
    place.replaceChildren();
    for (const snapshot of continued) {
      const body = document.createElement("answer-body");
      body.className = "answer";
      place.append(this.#continuedHead(snapshot.gen, stateText(snapshot)), body);
      body.paint(snapshot);
    }
    if (continued.length > 0) place.append(this.#continuedHead(this.#snapshot.gen, "goes on from here"));
  }

  #continuedHead(gen, what) {
    const head = cell("p", `Answer ${this.#answers.indexOf(gen) + 1}: ${what}`);
    head.className = "continued__head";
    return head;
  }

  #paintAgain(snapshot) {
    const { again, retry, goOn } = this.#parts;
    again.hidden = !(this.#canAskAgain && isCut(snapshot));
    goOn.hidden = !canContinue(snapshot);
    for (const [button, verb] of [[retry, "Retry"], [goOn, "Continue"]]) {
      button.setAttribute("aria-disabled", String(this.#asking));
      button.setAttribute("aria-label", `${verb} ${this.#name}`);
    }
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
    const { scroller, stop, jump, copy, reasoning, timings, older, newer, retry, goOn } = this.#parts;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#letGo(), { passive: true });
    // Opening the fold must not carry away what was clicked; what fits after all is followed again.
    reasoning.addEventListener("click", () => this.#follow.release());
    reasoning.addEventListener("toggle", () => this.#scrolled());
    scroller.addEventListener("click", (event) => this.#copyCode(event));
    jump.addEventListener("click", () => this.#jump());
    stop.addEventListener("click", () => this.#cancel());
    older.addEventListener("click", () => this.#turnTo(-1));
    newer.addEventListener("click", () => this.#turnTo(1));
    retry.addEventListener("click", () => this.#askAgain("retry"));
    goOn.addEventListener("click", () => this.#askAgain("continue"));
    copy.addEventListener("click", () => this.#copy(copy, this.#snapshot.text));
    stop.addEventListener("blur", () => this.#paintStop(this.#snapshot));
    timings.addEventListener("toggle", () => this.#paintTimings());
  }

  #cancel() {
    if (this.expectStop()) this.#dispatch("generation-cancel", { gen: this.#snapshot.gen });
  }

  #turnTo(step) {
    const at = this.#answers.indexOf(this.#snapshot.gen);
    this.#dispatch("answer-show", { gen: this.#answers[at + step], step });
  }

  #askAgain(kind) {
    if (this.#asking) return;
    this.#asking = true;
    this.#paintAgain(this.#snapshot);
    this.#dispatch("generation-again", { gen: this.#snapshot.gen, kind });
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
