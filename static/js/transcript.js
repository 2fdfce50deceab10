import { continuedBy } from "./again.js";

/** The turns of a conversation as elements, and the painting of their panes. */
export class Transcript {
  #place;
  #conversation;
  #answers;
  #faults;
  #turns = new Map();

  /**
   * @param {object} parts
   * @param {HTMLElement} parts.place  that scrolls, and holds the turns
   * @param {import("./conversation.js").Conversation} parts.conversation
   * @param {import("./shown-answers.js").ShownAnswers} parts.answers
   * @param {import("./faults.js").Faults} parts.faults
   */
  constructor({ place, conversation, answers, faults }) {
    this.#place = place;
    this.#conversation = conversation;
    this.#answers = answers;
    this.#faults = faults;
  }

  /** Show every turn with the answers that are to be seen. `current` is the pane that a narrow page shows. */
  introduceAll(current) {
    const turns = new Map(this.#conversation.turns.map((turn) => [turn.id, turn]));
    this.#faults.each(turns.keys(), (id) => this.introduce(turns.get(id), current));
  }

  introduce(turn, current) {
    const position = this.#conversation.turns.indexOf(turn) + 1;
    const element = this.#turn(turn.id);
    element.introduce(turn, position, this.#answers.of(turn));
    element.showPane(current);
  }

  /** The pane that shows a generation, if one does. */
  pane(gen) {
    for (const turn of this.#turns.values()) {
      const pane = turn.panes.get(gen);
      if (pane) return pane;
    }
    return undefined;
  }

  /** Measure all, paint all, park all: one layout for a frame, however many panes there are. */
  paint(gens) {
    const panes = new Map([...gens].map((gen) => [gen, this.pane(gen)]).filter(([, pane]) => pane));
    const steps = [(pane) => pane.measure(), (pane, gen) => this.#paintPane(pane, gen), (pane) => pane.park()];
    let left = [...panes.keys()];
    for (const step of steps) left = this.#faults.each(left, (gen) => step(panes.get(gen), gen));
  }

  showPane(index) {
    for (const turn of this.#turns.values()) turn.showPane(index);
  }

  /** Whether whoever reads is at the newest turn. */
  get isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#place;
    return scrollHeight - scrollTop - clientHeight < clientHeight / 2;
  }

  showNewest() {
    const newest = this.#turns.get(this.#conversation.turns.at(-1)?.id);
    newest?.settle();
    newest?.scrollIntoView({ block: "start", behavior: "instant" });
  }

  /** The generations that a selection keeps from showing their newest blocks. */
  get heldPanes() {
    return [...this.#turns.values()].flatMap((turn) => turn.heldPanes);
  }

  #turn(id) {
    if (!this.#turns.has(id)) {
      const element = document.createElement("chat-turn");
      element.className = "turn";
      this.#turns.set(id, element);
      this.#place.append(element);
    }
    return this.#turns.get(id);
  }

  #paintPane(pane, gen) {
    const known = (id) => this.#conversation.generation(id);
    pane.paint(known(gen), this.#conversation.pace(gen), continuedBy(known(gen), known));
  }
}
