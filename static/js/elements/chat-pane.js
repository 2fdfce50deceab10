import { canContinue, isCut } from "../again.js";
import { copyText } from "../clipboard.js";
import { Follow } from "../follow.js";
import { metrics, stateText, timingRows } from "../format.js";
import { noticeOf } from "../notices.js";
import { cloneTemplate, parts, setText, textElement } from "../page.js";
import { AnswerPager } from "../pane/answer-pager.js";
import { ContinuedAnswers } from "../pane/continued-answers.js";
import { StopButton } from "../pane/stop-button.js";
import { ToolCalls } from "../pane/tool-calls.js";

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
  #pager;
  #stop;
  #tools;
  #continued;
  #follow = new Follow();
  #snapshot = null;
  #name = "";
  #askedAt = null;
  #asking = false;
  #canAskAgain = false;

  connectedCallback() {
    if (this.#parts) return;
    const content = cloneTemplate("pane-template");
    this.#parts = parts(content);
    this.append(content);
    this.#pager = new AnswerPager(this.#parts, (gen, step) => this.#dispatch("answer-show", { gen, step }));
    this.#stop = new StopButton(this.#parts.stop, () => this.#dispatch("generation-cancel", { gen: this.#snapshot.gen }));
    this.#tools = new ToolCalls(this.#parts.tools);
    this.#continued = new ContinuedAnswers(this.#parts.continued);
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
    setText(this.#parts.label, label);
    this.#parts.label.title = label;
    setText(this.#parts.number, String(number));
    this.dataset.hue = ((number - 1) % 8) + 1;
    this.setAttribute("aria-label", `${name}, answer`);
    this.#parts.scroller.setAttribute("aria-label", `Text of ${name}`);
    this.#parts.copy.setAttribute("aria-label", `Copy the answer of ${name}`);
    this.#name = name;
    this.#askedAt = askedAt;
    this.#canAskAgain = canAskAgain;
    this.#pager.paint(gens, gen, name);
    if (this.#snapshot) this.#paintAgain(this.#snapshot);
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
    this.#tools.paint(snapshot.tools);
    this.#continued.paint(continued, snapshot.gen, (gen) => this.#pager.placeOf(gen));
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
    return this.#stop.expectStop();
  }

  /** The request to stop was answered, or came to nothing: the next painting shows what the state says. */
  stopAnswered() {
    this.#stop.stopAnswered();
  }

  /** Say that the request for another answer did not get through. */
  askingFailed() {
    this.#asking = false;
    this.#paintAgain(this.#snapshot);
  }

  focusStop() {
    this.#stop.focus();
  }

  /** Put the focus where it was before this pane took another's place. */
  focusPager(step) {
    this.#pager.focus(step);
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
    this.#stop.paint(snapshot, this.#name);
    if (timings.open) this.#paintTimings();
  }

  #paintTimings() {
    const rows = timingRows(this.#snapshot);
    const cells = rows.flatMap(([name, value]) => [textElement("dt", name), textElement("dd", value)]);
    const fallback = textElement("dd", "The server’s measurements come when the answer ends.");
    this.#parts.rows.replaceChildren(...(cells.length > 0 ? cells : [fallback]));
  }

  // Content

  #paintReasoning({ reasoning }) {
    const { reasoning: fold, reasoningText } = this.#parts;
    fold.hidden = reasoning === "";
    const painted = reasoningText.firstChild ?? reasoningText.appendChild(document.createTextNode(""));
    if (reasoning === painted.data) return;
    if (reasoning.startsWith(painted.data)) painted.appendData(reasoning.slice(painted.length));
    else painted.data = reasoning;
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
    this.#paintSaid(snapshot.error?.said ?? "");
  }

  #paintSaid(words) {
    const { said, saidText } = this.#parts;
    // Another answer's words come unasked, so they are folded again.
    if (saidText.textContent !== words) said.open = false;
    said.hidden = words === "";
    setText(saidText, words);
  }

  // Actions

  #listen() {
    const { scroller, jump, copy, reasoning, said, timings, retry, goOn } = this.#parts;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && this.#letGo(), { passive: true });
    // Opening the fold must not carry away what was clicked; what fits after all is followed again.
    for (const fold of [reasoning, said]) {
      fold.addEventListener("click", () => this.#follow.release());
      fold.addEventListener("toggle", () => this.#scrolled());
    }
    scroller.addEventListener("click", (event) => this.#copyCode(event));
    jump.addEventListener("click", () => this.#jump());
    retry.addEventListener("click", () => this.#askAgain("retry"));
    goOn.addEventListener("click", () => this.#askAgain("continue"));
    copy.addEventListener("click", () => this.#copy(copy, this.#snapshot.text));
    timings.addEventListener("toggle", () => this.#paintTimings());
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
