/**
 * A conversation that is followed: its state, its connection and its requests. No DOM of its own;
 * it tells its listener what changed.
 */

import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { State, isLive } from "./protocol.js";
import { uuid } from "./uuid.js";

// A driver answers a stop within two seconds, and one that is lost is noticed within twelve.
const STOP_MS = 10_000;

export class Session {
  #api;
  #urls;
  #listener;
  #after;
  #stopping = new Set();
  #keys = new Map();

  /**
   * @param {object} parts
   * @param {object} parts.sync    the sync document that came with the page
   * @param {object} parts.urls    as the server gave them: sync, events, socket and turns of the conversation,
   *   cancelAll, and those of a generation: generation, cancel, retry and continue
   * @param {object} parts.api
   * @param {(fetchSync: () => Promise<object>) => import("./connection.js").Ports} parts.ports
   * @param {string} [parts.transport]
   * @param {{changed: (ids: Iterable<string>) => void, turns: () => void, restored: () => void,
   *   status: (status: string, failures: number) => void}} parts.listener
   */
  constructor({ sync, urls, api, ports, transport, listener }) {
    this.#api = api;
    this.#urls = urls;
    this.#listener = listener;
    this.conversation = new Conversation(sync);
    const all = ports(() => api.get(urls.sync));
    this.#after = all.after;
    this.connection = new Connection({
      ports: all,
      urls,
      transport,
      handlers: {
        cursor: () => this.conversation.cursor,
        awaits: () => this.conversation.live.length > 0,
        frame: (frame) => this.#apply(frame),
        sync: (document) => this.#restore(document),
        status: listener.status,
      },
    });
    this.#watchStops();
  }

  /** Send a prompt. The answer may come after the live connection has told of the turn already. */
  async send(prompt) {
    const { turn } = await this.#api.post(this.#urls.turns, prompt);
    if (this.conversation.addTurn(turn).length > 0) this.#listener.turns();
  }

  /** Ask for a generation to be stopped. The log answers with its terminal event. */
  async cancel(gen) {
    const { state } = await this.#api.postForCertain(this.#url("cancel", gen));
    this.#noteCancels([{ id: gen, state }]);
  }

  /** Ask for everything to be stopped. */
  async cancelAll() {
    const { generations } = await this.#api.postForCertain(this.#urls.cancelAll);
    this.#noteCancels(generations);
  }

  /**
   * Ask for another answer in place of one that ended, or for one that goes on from it. Gives its id.
   *
   * @param {"retry"|"continue"} kind
   */
  async again(gen, kind) {
    const wish = `${kind} ${gen}`;
    // The same until it got through: a click after a lost answer must not ask twice.
    if (!this.#keys.has(wish)) this.#keys.set(wish, uuid());
    const { generation } = await this.#api.post(this.#url(kind, gen), { key: this.#keys.get(wish) });
    this.#keys.delete(wish);
    const turn = this.conversation.turnOf(gen);
    if (this.conversation.addTurn({ ...turn, generations: [generation] }).length > 0) this.#listener.turns();
    return generation.gen;
  }

  /** Ask where those stand that wait in line. */
  async refreshPlaces() {
    const waiting = this.conversation.live.filter(({ state }) => state === State.queued);
    const told = await Promise.all(waiting.map(({ gen }) => this.#api.get(this.#url("generation", gen)).catch(() => null)));
    const moved = told.filter((one) => one !== null && this.conversation.setPlace(one.id, one.place));
    this.#changed(new Set(moved.map(({ id }) => id)));
  }

  /** What has ended already tells of its end in the log. */
  #noteCancels(answers) {
    const taken = answers.filter(({ id, state }) => isLive(state) && this.conversation.noteCancel(id));
    this.#changed(new Set(taken.map(({ id }) => id)));
  }

  #changed(gens) {
    this.#watchStops();
    this.#listener.changed(gens);
  }

  /** A server that lost its data has forgotten a stop, and no event will say so: ask after a while. */
  #watchStops() {
    for (const { gen } of this.#stops) {
      if (this.#stopping.has(gen)) continue;
      this.#stopping.add(gen);
      this.#after(STOP_MS, () => this.#lookAfterStop(gen));
    }
  }

  /** The answers that were asked to stop and have not ended. */
  get #stops() {
    return this.conversation.live.filter((one) => one.cancel_requested !== null);
  }

  #lookAfterStop(gen) {
    this.#stopping.delete(gen);
    if (this.#stops.some((one) => one.gen === gen)) this.connection.doubt();
  }

  #url(name, gen) {
    return this.#urls[name].replace("{gen}", gen);
  }

  #apply(frame) {
    const outcome = this.conversation.apply(frame);
    if (outcome.turns) this.#listener.turns();
    this.#changed(outcome.changed);
    return outcome;
  }

  #restore(sync) {
    this.conversation.replace(sync);
    this.#watchStops();
    this.#listener.restored();
  }
}
