/**
 * Wishes to stop: each is kept until the server has answered it, whatever happens to the network, and across reloads
 * of the tab. Sending one again is harmless. Pure but for its ports.
 */

import { Backoff } from "./backoff.js";

// Not at once: what was refused a moment ago would be refused again.
const PAUSE_MS = 1_000;

export class KeptStops {
  #storage;
  #name;
  #gens;
  #ask;
  #sent;
  #after;
  #backoff;
  #isDue = false;
  #isAsking = false;

  /**
   * @param {object} parts
   * @param {Storage} parts.storage
   * @param {string} parts.conversation
   * @param {(gen: string) => Promise<boolean>} parts.ask  gives whether the server has answered, in whatever way
   * @param {() => void} parts.sent  all that were kept have been tried
   * @param {typeof import("./timers.js").after} parts.after
   * @param {() => number} parts.random
   */
  constructor({ storage, conversation, ask, sent, after, random }) {
    this.#storage = storage;
    this.#name = `sidestream:stops:${conversation}`;
    this.#gens = new Set(parse(storage.getItem(this.#name)));
    this.#ask = ask;
    this.#sent = sent;
    this.#after = after;
    this.#backoff = new Backoff(random);
  }

  has(gen) {
    return this.#gens.has(gen);
  }

  /** Keep wishes from the moment they are made: the page may be left before anybody has answered. */
  keep(gens) {
    gens.forEach((gen) => this.#gens.add(gen));
    this.#save();
  }

  drop(gens) {
    const dropped = gens.filter((gen) => this.#gens.delete(gen));
    if (dropped.length > 0) this.#save();
  }

  /** Keep those only that this holds of: what has ended needs no stop. */
  retain(holds) {
    this.drop([...this.#gens].filter((gen) => !holds(gen)));
  }

  /** Send all that are kept: the server can be reached again, or it is time to look. */
  async send() {
    if (this.#isAsking || this.#gens.size === 0) return;
    this.#isAsking = true;
    const gens = [...this.#gens];
    const answered = await Promise.all(gens.map((gen) => this.#ask(gen)));
    this.#isAsking = false;
    this.drop(gens.filter((_, place) => answered[place]));
    if (this.#gens.size > 0) this.sendLater();
    else this.#backoff.forget();
    this.#sent();
  }

  /** They did not get through just now. */
  sendLater() {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#after(PAUSE_MS + this.#backoff.next(), () => {
      this.#isDue = false;
      this.send();
    });
  }

  #save() {
    if (this.#gens.size > 0) this.#storage.setItem(this.#name, JSON.stringify([...this.#gens]));
    else this.#storage.removeItem(this.#name);
  }
}

function parse(text) {
  try {
    const gens = JSON.parse(text);
    return Array.isArray(gens) ? gens : [];
  } catch {
    return [];
  }
}
