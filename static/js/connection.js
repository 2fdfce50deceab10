/**
 * Keeps a page following its conversation, whatever happens to the network, the tab or the server.
 * Pure but for its ports: sockets, time, chance and the sync request are passed in.
 *
 * The end of a connection never means the end of a generation: it only means to come back.
 */

import { Frame } from "./protocol.js";
import { openEvents, openSocket } from "./transports.js";

export const Status = Object.freeze({
  idle: "idle",
  connecting: "connecting",
  syncing: "syncing",
  live: "live",
  waiting: "waiting",
  gone: "gone",
});

export const Transport = Object.freeze({ socket: "socket", events: "events" });

const OPENERS = { [Transport.socket]: openSocket, [Transport.events]: openEvents };
const OTHER = { [Transport.socket]: Transport.events, [Transport.events]: Transport.socket };

// The server sends a ping after 15 s of silence: two of them may get lost before we give up.
const SILENCE_MS = 40_000;
// A proxy that swallows upgrades leaves a socket connecting for ever.
const CONNECT_MS = 8_000;
// A phone may kill a socket in the background without telling. Anything heard since is proof.
const FRESH_MS = 10_000;
// A connection that lived this long was a good one, also if the conversation was silent.
const GOOD_MS = 5_000;
const ACK_MS = 250;
const ACK_UNITS = 64 * 1024;
const BACKOFF = { first: 500, cap: 15_000 };

/** Full jitter: anywhere between nothing and the doubled time, so that many pages never come in step. */
export const backoffMs = (failures, random) =>
  random * Math.min(BACKOFF.cap, BACKOFF.first * 2 ** Math.min(failures, 10));

/**
 * @typedef {object} Ports
 * @property {(url: string) => WebSocket} socket
 * @property {(url: string) => EventSource} events
 * @property {() => Promise<object>} sync      rejects with `{gone: true}` when the conversation is not there
 * @property {() => number} now
 * @property {(ms: number, run: () => void) => (() => void)} after   gives a function that takes it back
 * @property {() => number} random
 * @property {() => boolean} hidden
 *
 * @typedef {object} Handlers
 * @property {() => string} cursor                        where to go on reading
 * @property {(frame: object) => {gap: boolean}} frame
 * @property {(sync: object) => void} sync
 * @property {(status: string, failures: number) => void} status
 */
export class Connection {
  #ports;
  #urls;
  #handlers;
  #kind;
  #forced;
  #status = Status.idle;
  #epoch = 0;
  #link = null;
  #failures = 0;
  #needsSync = false;
  #appliedSinceSync = true;
  #socketWorked = false;
  #openedAt = null;
  #heardAt = 0;
  #unacknowledged = 0;
  #timers = new Map();

  /**
   * @param {{ports: Ports, handlers: Handlers, urls: {socket: string, events: string}, transport?: string}} parts
   *   `transport` forces one; without it a socket is tried first.
   */
  constructor({ ports, handlers, urls, transport }) {
    this.#ports = ports;
    this.#handlers = handlers;
    this.#urls = urls;
    this.#forced = transport !== undefined;
    this.#kind = transport ?? Transport.socket;
  }

  get status() {
    return this.#status;
  }

  get transport() {
    return this.#kind;
  }

  /** Follow from the cursor that the handlers give. */
  start() {
    this.#open();
  }

  /** The page goes away, perhaps to come back from the browser's cache. */
  stop() {
    this.#close();
    this.#become(Status.idle);
  }

  /** The page was shown, woken or put online: make sure that what looks open is alive. */
  wake() {
    if (this.#status === Status.gone || this.#status === Status.syncing) return;
    if (this.#status === Status.live && this.#ports.now() - this.#heardAt < FRESH_MS) return;
    this.resync();
  }

  /** Ask for everything again, then go on from there. */
  resync() {
    this.#needsSync = true;
    this.#failures = 0;
    this.#proceed();
  }

  #proceed() {
    if (this.#needsSync) this.#sync();
    else this.#open();
  }

  #open() {
    this.#close();
    this.#become(Status.connecting);
    const guarded = this.#guard();
    this.#heardAt = this.#ports.now();
    this.#link = OPENERS[this.#kind]({ ports: this.#ports, urls: this.#urls }, this.#handlers.cursor(), {
      opened: guarded(() => this.#opened()),
      heard: guarded((text) => this.#heard(text)),
      lost: guarded(() => this.#lost()),
    });
    this.#setTimer("connect", CONNECT_MS, () => this.#lost());
  }

  /** Callbacks of a link that has been replaced are dropped: a fence, as the log has for drivers. */
  #guard() {
    const epoch = this.#epoch;
    return (run) => (...args) => {
      if (epoch === this.#epoch) run(...args);
    };
  }

  #opened() {
    this.#clearTimer("connect");
    this.#openedAt = this.#ports.now();
    this.#heardAt = this.#openedAt;
    this.#socketWorked ||= this.#kind === Transport.socket;
    this.#become(Status.live);
    this.#watch(SILENCE_MS);
  }

  /** While the page is hidden its timers are late, so they can't tell that the server is silent. */
  #watch(ms) {
    this.#setTimer("silence", ms, () => {
      const left = this.#heardAt + SILENCE_MS - this.#ports.now();
      if (left > 0) this.#watch(left);
      else if (this.#ports.hidden()) this.#watch(SILENCE_MS);
      else this.#lost();
    });
  }

  #heard(text) {
    this.#heardAt = this.#ports.now();
    const frame = decode(text);
    if (frame.type === Frame.ping) return;
    if (frame.type === Frame.resync || this.#handlers.frame(frame).gap) this.#missed();
    else this.#applied(text.length);
  }

  #missed() {
    this.#needsSync = true;
    // A sync that led straight to the next gap must not become a loop at full speed.
    if (this.#appliedSinceSync) this.#proceed();
    else this.#retry();
  }

  #applied(units) {
    this.#failures = 0;
    this.#appliedSinceSync = true;
    this.#unacknowledged += units;
    if (this.#unacknowledged >= ACK_UNITS) this.#acknowledge();
    else if (!this.#timers.has("acknowledge")) this.#setTimer("acknowledge", ACK_MS, () => this.#acknowledge());
  }

  #acknowledge() {
    this.#clearTimer("acknowledge");
    this.#unacknowledged = 0;
    this.#link.acknowledge(this.#handlers.cursor());
  }

  #lost() {
    const opened = this.#openedAt !== null;
    if (opened && this.#ports.now() - this.#openedAt >= GOOD_MS) this.#failures = 0;
    if (!this.#forced) this.#kind = this.#nextKind(opened);
    this.#retry();
  }

  /** A socket that worked once is worth trying again; one that never did is left alone while SSE works. */
  #nextKind(opened) {
    if (!opened) return OTHER[this.#kind];
    return this.#socketWorked ? Transport.socket : this.#kind;
  }

  #retry() {
    this.#close();
    const delay = backoffMs(this.#failures, this.#ports.random());
    this.#failures += 1;
    // One failure may be the network's. After more, ask first what has become of the conversation.
    if (this.#failures > 2) this.#needsSync = true;
    this.#become(Status.waiting);
    this.#setTimer("retry", delay, () => this.#proceed());
  }

  async #sync() {
    this.#close();
    this.#become(Status.syncing);
    const guarded = this.#guard();
    await this.#ports.sync().then(
      guarded((sync) => this.#synced(sync)),
      guarded((error) => (error.gone ? this.#become(Status.gone) : this.#retry())),
    );
  }

  #synced(sync) {
    this.#needsSync = false;
    this.#appliedSinceSync = false;
    this.#handlers.sync(sync);
    this.#open();
  }

  #close() {
    this.#epoch += 1;
    this.#timers.forEach((cancel) => cancel());
    this.#timers.clear();
    this.#link?.close();
    this.#link = null;
    this.#openedAt = null;
    this.#unacknowledged = 0;
  }

  #become(status) {
    this.#status = status;
    this.#handlers.status(status, this.#failures);
  }

  #setTimer(name, ms, run) {
    this.#clearTimer(name);
    this.#timers.set(
      name,
      this.#ports.after(ms, () => {
        this.#timers.delete(name);
        run();
      }),
    );
  }

  #clearTimer(name) {
    this.#timers.get(name)?.();
    this.#timers.delete(name);
  }
}

/** What is no JSON was cut or changed on its way: the same as having missed it. */
function decode(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { type: Frame.resync };
  }
}
