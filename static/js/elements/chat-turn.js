import { epochMs } from "../format.js";
import { cloneTemplate, parts, setText } from "../page.js";

/** One prompt and the panes that answer it. */
export class ChatTurn extends HTMLElement {
  #parts = null;
  /** For each pane of the conversation, which of its answers is shown here and by what. */
  #slots = new Map();

  connectedCallback() {
    if (this.#parts) return;
    const content = cloneTemplate("turn-template");
    this.#parts = parts(content);
    this.append(content);
  }

  /**
   * Show the prompt, and of each pane one answer.
   *
   * @param {object} turn
   * @param {number} position  from 1
   * @param {object[]} answers  one of each pane, in order: its `key`, and what `ChatPane.introduce` takes
   */
  introduce(turn, position, answers) {
    setText(this.#parts.heading, `Prompt ${position}`);
    setText(this.#parts.prompt, turn.prompt);
    this.#parts.panes.dataset.count = answers.length;
    const askedAt = epochMs(turn.created_at);
    answers.forEach((answer, index) => this.#introducePane(answer, { number: index + 1, askedAt }));
    this.#dropPanes(new Set(answers.map(({ key }) => key)));
  }

  /** The panes by the generation that each shows. */
  get panes() {
    return new Map([...this.#slots.values()].map(({ gen, pane }) => [gen, pane]));
  }

  /** The generations that a selection keeps from showing their newest blocks. */
  get heldPanes() {
    return [...this.panes].filter(([, pane]) => pane.held).map(([gen]) => gen);
  }

  /** On a narrow page one pane is seen at a time; a turn with fewer shows its last. */
  showPane(index) {
    const panes = [...this.panes.values()];
    const seen = Math.min(index, panes.length - 1);
    panes.forEach((pane, at) => pane.toggleAttribute("data-current", at === seen));
  }

  /** A long prompt scrolls in its box, and then has to be reachable by keyboard. */
  settle() {
    const { prompt } = this.#parts;
    if (prompt.scrollHeight > prompt.clientHeight) prompt.tabIndex = 0;
  }

  #introducePane(answer, place) {
    if (this.#slots.get(answer.key)?.gen !== answer.gen) this.#showAnswer(answer);
    this.#slots.get(answer.key).pane.introduce({ ...answer, ...place });
  }

  /** Each answer has an element of its own, so that nothing of one can stay in the other. */
  #showAnswer({ key, gen }) {
    const pane = document.createElement("chat-pane");
    pane.className = "pane";
    pane.setAttribute("role", "article");
    const before = this.#slots.get(key)?.pane;
    pane.toggleAttribute("data-current", before?.hasAttribute("data-current") ?? false);
    if (before) before.replaceWith(pane);
    else this.#parts.panes.append(pane);
    this.#slots.set(key, { gen, pane });
  }

  #dropPanes(kept) {
    for (const [key, { pane }] of this.#slots) {
      if (kept.has(key)) continue;
      pane.remove();
      this.#slots.delete(key);
    }
  }
}
