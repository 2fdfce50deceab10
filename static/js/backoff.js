/** How long a page waits before it connects again. Pure. */

import { Close } from "./protocol.js";

const FIRST_MS = 500;
const CAP_MS = 15_000;
// A connection that lived this long was a good one, also if the conversation was silent: the next need not wait
// for long. It is longer than opening one takes, so a server that hangs up on everybody is not asked in a loop.
const GOOD_MS = 1_000;
// A busy server may take that long to refuse, too.
const REFUSALS = new Set([Close.tooMany, Close.fault, Close.unavailable]);

/** Full jitter: anywhere between nothing and the doubled time, so that many pages never come in step. */
export const backoffMs = (failures, random) =>
  random * Math.min(CAP_MS, FIRST_MS * 2 ** Math.min(failures, 10));

export class Backoff {
  #random;
  #failures = 0;

  /** @param {() => number} random */
  constructor(random) {
    this.#random = random;
  }

  /** How often in a row it came to nothing. */
  get failures() {
    return this.#failures;
  }

  /** Something came of it, or somebody is waiting. */
  forget() {
    this.#failures = 0;
  }

  /** A connection that was open for so long has ended, maybe with a code of the server's. */
  ended(livedMs, code) {
    if (code === Close.leaving || (livedMs >= GOOD_MS && !REFUSALS.has(code))) this.#failures = 0;
  }

  /** Count a failure, and say how long to wait for the next try. */
  next() {
    const ms = backoffMs(this.#failures, this.#random());
    this.#failures += 1;
    return ms;
  }

  /** A little while, another for each page. */
  moment() {
    return backoffMs(0, this.#random());
  }
}
