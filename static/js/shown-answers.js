/** Which answer of each pane a page shows, and what the panes are called. Pure. */

import { panesOf } from "./again.js";

export class ShownAnswers {
  #conversation;
  #labelOf;
  /** Where an older answer was asked for: which, and how many there were then. A new one is shown again. */
  #chosen = new Map();

  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {(model: string) => string} labelOf
   */
  constructor(conversation, labelOf) {
    this.#conversation = conversation;
    this.#labelOf = labelOf;
  }

  /**
   * The answer of each pane that is shown, with a name that no other pane of the turn has.
   *
   * @returns {{key: string, gens: string[], gen: string, label: string, name: string, canAskAgain: boolean}[]}
   */
  of(turn) {
    const answers = this.#panesOf(turn).map((pane) => this.#answer(turn, pane));
    return answers.map((answer, index) => {
      const isShared = answers.filter(({ label }) => label === answer.label).length > 1;
      return { ...answer, name: isShared ? `${answer.label} (pane ${index + 1})` : answer.label };
    });
  }

  /** The name of the pane that an answer belongs to. */
  nameOf(gen) {
    return this.of(this.#conversation.turnOf(gen)).find(({ gens }) => gens.includes(gen)).name;
  }

  /** Turn to this answer of its pane. Gives all answers of that pane, oldest first. */
  choose(gen) {
    const turn = this.#conversation.turnOf(gen);
    const { key, gens } = this.#panesOf(turn).find((pane) => pane.gens.includes(gen));
    this.#chosen.set(`${turn.id} ${key}`, { gen, of: gens.length });
    return gens;
  }

  #panesOf(turn) {
    return panesOf(turn, (gen) => this.#conversation.generation(gen));
  }

  /** The newest, unless an older one was asked for since it came. */
  #answer(turn, { key, gens }) {
    const chosen = this.#chosen.get(`${turn.id} ${key}`);
    const newest = gens.at(-1);
    const gen = chosen?.of === gens.length ? chosen.gen : newest;
    const label = this.#labelOf(this.#conversation.generation(gen).model);
    return { key, gens, gen, label, canAskAgain: gen === newest && this.#isLast(turn, key) };
  }

  /** Whether a pane has not been asked anything since. */
  #isLast(turn, key) {
    const later = this.#conversation.turns.slice(this.#conversation.turns.indexOf(turn) + 1);
    return later.every((one) => one.generations.every((gen) => this.#conversation.generation(gen).pane !== key));
  }
}
