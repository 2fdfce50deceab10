import { stateText } from "../format.js";
import { textElement } from "../page.js";

/** The answers that the shown one goes on from. Each stands by itself: their texts are never joined. */
export class ContinuedAnswers {
  #place;
  #painted = "";

  constructor(place) {
    this.#place = place;
  }

  /**
   * @param {object[]} continued  oldest first
   * @param {string} gen          the one that goes on
   * @param {(gen: string) => number} placeOf
   */
  paint(continued, gen, placeOf) {
    const painted = continued.map((one) => one.gen).join(" ");
    if (painted === this.#painted) return;
    this.#painted = painted;
    this.#place.hidden = continued.length === 0;
    this.#place.replaceChildren();
    for (const snapshot of continued) {
      const body = document.createElement("answer-body");
      body.className = "answer";
      this.#place.append(head(placeOf(snapshot.gen), stateText(snapshot)), body);
      body.paint(snapshot);
    }
    if (continued.length > 0) this.#place.append(head(placeOf(gen), "goes on from here"));
  }
}

const head = (place, what) => textElement("p", `Answer ${place}: ${what}`, "continued__head");
