/**
 * A conversation that is followed: its state, its connection and its requests. No DOM of its own;
 * it tells its listener what changed.
 */

import { Connection, Status } from "./connection.js";
import { Conversation } from "./conversation.js";
import { KeptStops } from "./kept-stops.js";
import { State, isLive } from "./protocol.js";
import { tabStorage } from "./tab-storage.js";
import { uuid } from "./uuid.js";

// A driver answers a stop within two seconds, and one that is lost is noticed within twelve.
const STOP_MS = 10_000;
// A page that may read the log no more asks itself.
const DEAF_STOP_MS = 2_000;

export class Session {
  #api;
  #urls;
  #listener;
  #after;
  #kept;
  #stopping = new Set();
  #keys = new Map();

  /**
   * @param {object} parts
   * @param {object} parts.sync    the sync document that came with the page
   * @param {object} parts.urls    as the server gave them: sync, events, socket and turns of the conversation,
   *   cancelAll, and those of a generation: generation, cancel, retry and continue; and session
   * @param {object} parts.api
   * @param {Storage} [parts.storage]
   * @param {(fetchSync: () => Promise<object>) => import("./connection.js").Ports} parts.ports
   * @param {string} [parts.transport]
   * @param {{changed: (ids: Iterable<string>) => void, turns: () => void, restored: () => void,
   *   status: (status: string, failures: number) => void, refused: (problem: Error) => void}} parts.listener
   *   `refused`: a stop that had been kept
   */
  constructor({ sync, urls, api, storage = tabStorage(), ports, transport, listener }) {
    this.#api = api;
    this.#urls = urls;
    this.#listener = listener;
    this.conversation = new Conversation(sync);
    const all = ports(() => api.get(urls.sync));
    this.#after = all.after;
    this.#kept = new KeptStops({
      storage,
      conversation: this.conversation.id,
      ask: (gen) => this.#askAgainToStop(gen),
      sent: () => this.#changed(this.#noteKept()),
      after: all.after,
      random: all.random,
    });
    this.connection = new Connection({
      ports: all,
      urls,
      transport,
      handlers: {
        cursor: () => this.conversation.cursor,
        awaits: () => this.conversation.live.length > 0,
        frame: (frame) => this.#apply(frame),
        sync: (document) => this.#restore(document),
        status: (...status) => this.#statusChanged(...status),
        renew: () => api.get(urls.session).catch(() => {}), // The server says it again.
      },
    });
    this.#noteKept();
    this.#watchStops();
  }

  /** Send a prompt. The answer may come after the live connection has told of the turn already. */
  async send(prompt) {
    const { turn } = await this.#api.post(this.#urls.turns, prompt);
    if (this.conversation.addTurn(turn).length > 0) this.#listener.turns();
  }

  /**
   * Ask for a generation to be stopped. The log answers with its terminal event. What does not get through just now
   * is kept, and asked again until it is answered.
   */
  async cancel(gen) {
    await this.#untilAnswered([gen], () => this.#cancel(gen));
  }

  /** Ask for everything to be stopped. */
  async cancelAll() {
    const gens = this.conversation.live.map(({ gen }) => gen);
    await this.#untilAnswered(gens, async () => {
      const { generations } = await this.#api.postForCertain(this.#urls.cancelAll, this.#keysOf(gens));
      this.#noteCancels(generations);
    });
  }

  async #cancel(gen) {
    const { state } = await this.#api.postForCertain(this.#url("cancel", gen), this.#keysOf([gen]));
    this.#noteCancels([{ id: gen, state }]);
  }

  /** The keys by which a page may stop what it shows, also when its session is gone. */
  #keysOf(gens) {
    const keys = gens.map((gen) => this.conversation.generation(gen)?.stop_key).filter(Boolean);
    return { stop_keys: keys };
  }

  async #untilAnswered(gens, ask) {
    this.#kept.keep(gens);
    try {
      await ask();
      this.#kept.drop(gens);
    } catch (problem) {
      if (problem.passes) this.#kept.sendLater();
      else this.#kept.drop(gens);
      throw problem;
    } finally {
      this.#changed(this.#noteKept());
    }
  }

  async #askAgainToStop(gen) {
    try {
      await this.#cancel(gen);
      return true;
    } catch (problem) {
      if (!problem.passes) this.#listener.refused(problem);
      return !problem.passes;
    }
  }

  /** Bring the conversation in step with what is kept. Gives the ids of what looks different now. */
  #noteKept() {
    const { conversation } = this;
    this.#kept.retain((gen) => isLive(conversation.generation(gen)?.state ?? State.completed));
    return conversation.generations.map(({ gen }) => gen).filter((gen) => conversation.noteKeptStop(gen, this.#kept.has(gen)));
  }

  #statusChanged(status, failures) {
    this.#listener.status(status, failures);
    if (status === Status.live || status === Status.gone) this.#kept.send();
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

  /** The conversation is not there for this page any more: its session is gone. It may still stop what it shows. */
  get #isDeaf() {
    return this.connection.status === Status.gone;
  }

  /** What has ended already tells of its end in the log, to those who may read it. */
  #noteCancels(answers) {
    const taken = answers.filter(({ id, state }) =>
      isLive(state) ? this.conversation.noteCancel(id) : this.#isDeaf && this.conversation.noteEnd(id, state),
    );
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
      this.#after(this.#isDeaf ? DEAF_STOP_MS : STOP_MS, () => this.#lookAfterStop(gen));
    }
  }

  /** The answers that were asked to stop and have not ended. */
  get #stops() {
    return this.conversation.live.filter((one) => one.cancel_requested !== null);
  }

  #lookAfterStop(gen) {
    this.#stopping.delete(gen);
    if (!this.#stops.some((one) => one.gen === gen)) return;
    if (!this.#isDeaf) this.connection.doubt();
    else this.#cancel(gen).catch(() => {}).finally(() => this.#watchStops());
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
    this.#noteKept();
    this.#watchStops();
    this.#listener.restored();
  }
}
