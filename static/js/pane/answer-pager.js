import { setText } from "../page.js";

/** The buttons that turn to a pane's older and newer answers, and where the shown one stands. */
export class AnswerPager {
  #parts;
  #gens = [];
  #gen = "";

  /** @param {(gen: string, step: number) => void} turn  to another answer */
  constructor({ pager, older, newer, which }, turn) {
    this.#parts = { pager, older, newer, which };
    older.addEventListener("click", () => turn(this.#neighbour(-1), -1));
    newer.addEventListener("click", () => turn(this.#neighbour(1), 1));
  }

  /**
   * @param {string[]} gens  all answers, oldest first
   * @param {string} gen     the shown one
   * @param {string} name    of the pane
   */
  paint(gens, gen, name) {
    const { pager, older, newer, which } = this.#parts;
    this.#gens = gens;
    this.#gen = gen;
    pager.hidden = gens.length < 2;
    older.disabled = gens.at(0) === gen;
    newer.disabled = gens.at(-1) === gen;
    setText(which, `${this.placeOf(gen)} of ${gens.length}`);
    pager.setAttribute("aria-label", `Answers of ${name}`);
  }

  /** An answer's place among those of its pane, from 1. */
  placeOf(gen) {
    return this.#gens.indexOf(gen) + 1;
  }

  /** Put the focus where it was before this pane took another's place. */
  focus(step) {
    const { older, newer } = this.#parts;
    const wanted = step < 0 ? older : newer;
    (wanted.disabled ? (step < 0 ? newer : older) : wanted).focus();
  }

  #neighbour(step) {
    return this.#gens[this.#gens.indexOf(this.#gen) + step];
  }
}
