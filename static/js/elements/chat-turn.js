import { epochMs } from "../format.js";
import { cloneTemplate, parts } from "../page.js";

/** One prompt and the panes that answer it. */
export class ChatTurn extends HTMLElement {
  #parts = null;
  #panes = new Map();

  connectedCallback() {
    if (this.#parts) return;
    const content = cloneTemplate("turn-template");
    this.#parts = parts(content);
    this.append(content);
  }

  /**
   * Show the prompt and a pane for each generation.
   *
   * @param {object} turn
   * @param {number} position  from 1
   * @param {{gen: string, label: string, name: string}[]} answers  the newest of each pane, in order
   */
  introduce(turn, position, answers) {
    this.#parts.heading.textContent = `Prompt ${position}`;
    this.#parts.prompt.textContent = turn.prompt;
    this.#parts.panes.dataset.count = answers.length;
    const askedAt = epochMs(turn.created_at);
    answers.forEach((answer, index) => this.#introducePane(answer, { number: index + 1, askedAt }));
    this.#dropPanes(new Set(answers.map(({ gen }) => gen)));
  }

  get panes() {
    return this.#panes;
  }

  /** The generations that a selection keeps from showing their newest blocks. */
  get heldPanes() {
    return [...this.#panes].filter(([, pane]) => pane.held).map(([gen]) => gen);
  }

  /** On a narrow page one pane is seen at a time; a turn with fewer shows its last. */
  showPane(index) {
    const panes = [...this.#panes.values()];
    const seen = Math.min(index, panes.length - 1);
    panes.forEach((pane, at) => pane.toggleAttribute("data-current", at === seen));
  }

  /** A long prompt scrolls in its box, and then has to be reachable by keyboard. */
  settle() {
    const { prompt } = this.#parts;
    if (prompt.scrollHeight > prompt.clientHeight) prompt.tabIndex = 0;
  }

  #introducePane(answer, place) {
    let pane = this.#panes.get(answer.gen);
    if (!pane) {
      pane = document.createElement("chat-pane");
      pane.className = "pane";
      pane.setAttribute("role", "article");
      this.#panes.set(answer.gen, pane);
      this.#parts.panes.append(pane);
    }
    pane.introduce({ ...answer, ...place });
  }

  #dropPanes(kept) {
    for (const [gen, pane] of this.#panes) {
      if (kept.has(gen)) continue;
      pane.remove();
      this.#panes.delete(gen);
    }
  }
}
