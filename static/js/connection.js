/**
 * Keeps a page following its conversation, whatever happens to the network, the tab or the server.
 * Pure but for its ports: sockets, time, chance and the sync request are passed in.
 *
 * The end of a connection never means the end of a generation: it only means to come back.
 */

import { Backoff } from "./backoff.js";
import { Close, Frame } from "./protocol.js";
import { Timers } from "./timers.js";
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
// A phone may kill a socket in the background without telling, and lose the reply to a sync. Anything heard or
// asked since is proof.
const FRESH_MS = 10_000;
// At the second ping in a row nothing has been told for longer than this. Pages that hear their pings in the
// same moment ask at different ones.
const QUIET_MS = 25_000;
const QUIET_SPREAD_MS = 5_000;
// What the server says of a cursor or a conversation that it does not know.
const DOUBTS = new Set([Close.invalid, Close.nothingHere]);
const ACK_MS = 250;
const ACK_UNITS = 64 * 1024;

/**
 * @typedef {object} Ports
 * @property {(url: string) => WebSocket} socket
 * @property {(url: string) => EventSource} events
 * @property {() => Promise<object>} sync      rejects with `{gone: true}` when the conversation is not there
 * @property {() => number} now
 * @property {typeof import("./timers.js").after} after
 * @property {() => number} random
 * @property {() => boolean} hidden
 * @property {(error: Error) => void} report   of what should not have happened, for whoever develops this
 *
 * @typedef {object} Handlers
 * @property {() => string} cursor                        where to go on reading
 * @property {() => boolean} awaits                       whether an answer is under way
 * @property {(frame: object) => {gap: boolean}} frame
 * @property {(sync: object) => void} sync
 * @property {(status: string, failures: number) => void} status
 * @property {() => void} renew                           the session, which a socket cannot do
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
  #backoff;
  #needsSync = false;
  #appliedSinceSync = true;
  #socketWorked = false;
  #openedAt = null;
  #heardAt = 0;
  #toldAt = 0;
  #unacknowledged = 0;
  #timers;

  /**
   * @param {{ports: Ports, handlers: Handlers, urls: {socket: string, events: string}, transport?: string}} parts
   *   `transport` forces one; without it a socket is tried first.
   */
  constructor({ ports, handlers, urls, transport }) {
    this.#ports = ports;
    this.#timers = new Timers(ports.after);
    this.#backoff = new Backoff(ports.random);
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

  /** Follow from the cursor that the handlers give. Call it once. */
  start() {
    this.#toldAt = this.#ports.now();
    this.#proceed();
  }

  /** The page goes away, perhaps to come back from the browser's cache. */
  stop() {
    this.#close();
    this.#become(Status.idle);
  }

  /**
   * The page was shown, woken or put online: make sure that what looks open is alive, and see whether what was gone
   * is back, as after a sign-in in another tab.
   */
  wake() {
    const isAtIt = this.#status === Status.live || this.#status === Status.syncing;
    if (isAtIt && this.#ports.now() - this.#heardAt < FRESH_MS) return;
    this.resync();
  }

  /** Ask for everything again, then go on from there. */
  resync() {
    this.#needsSync = true;
    this.#backoff.forget();
    this.#proceed();
  }

  /** What is shown may not be what there is: ask for everything again soon, or else before the next connection. */
  doubt() {
    this.#needsSync = true;
    if (this.#link === null || this.#timers.has("doubt")) return;
    this.#timers.set("doubt", this.#backoff.moment(), () => this.#proceed());
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
      heard: guarded((frame, units) => this.#heard(frame, units)),
      lost: guarded((code) => this.#lost(code)),
    });
    this.#timers.set("connect", CONNECT_MS, () => this.#lost());
  }

  /** Callbacks of a link that has been replaced are dropped: a fence, as the log has for drivers. */
  #guard() {
    const epoch = this.#epoch;
    return (run) => (...args) => {
      if (epoch === this.#epoch) run(...args);
    };
  }

  #opened() {
    this.#timers.clear("connect");
    this.#openedAt = this.#ports.now();
    this.#heardAt = this.#openedAt;
    this.#socketWorked ||= this.#kind === Transport.socket;
    this.#become(Status.live);
    this.#watch(SILENCE_MS);
  }

  /** While the page is hidden its timers are late, so they can't tell that the server is silent. */
  #watch(ms) {
    this.#timers.set("silence", ms, () => {
      const left = this.#heardAt + SILENCE_MS - this.#ports.now();
      if (left > 0) this.#watch(left);
      else if (this.#ports.hidden()) this.#watch(SILENCE_MS);
      else this.#lost();
    });
  }

  #heard(frame, units) {
    this.#heardAt = this.#ports.now();
    if (frame.type === Frame.ping) this.#pinged();
    else if (frame.type === Frame.renew) this.#handlers.renew();
    else if (frame.type === Frame.resync || this.#fold(frame).gap) this.#missed();
    else this.#applied(units);
  }

  /** What cannot be folded was missed. */
  #fold(frame) {
    try {
      return this.#handlers.frame(frame);
    } catch (error) {
      this.#ports.report(error);
      return { gap: true };
    }
  }

  #pinged() {
    if (!this.#isTooQuiet || this.#timers.has("quiet")) return;
    this.#timers.set("quiet", this.#ports.random() * QUIET_SPREAD_MS, () => this.resync());
  }

  /** A log that lost its end is as silent as a slow model. Only a sync tells them apart. */
  get #isTooQuiet() {
    return this.#handlers.awaits() && this.#ports.now() - this.#toldAt >= QUIET_MS;
  }

  #missed() {
    this.#needsSync = true;
    // A sync that led straight to the next gap must not become a loop at full speed.
    if (this.#appliedSinceSync) this.#proceed();
    else this.#retry();
  }

  #applied(units) {
    this.#toldAt = this.#heardAt;
    this.#timers.clear("quiet");
    this.#backoff.forget();
    this.#appliedSinceSync = true;
    this.#unacknowledged += units;
    if (this.#unacknowledged >= ACK_UNITS) this.#acknowledge();
    else if (!this.#timers.has("acknowledge")) this.#timers.set("acknowledge", ACK_MS, () => this.#acknowledge());
  }

  #acknowledge() {
    this.#timers.clear("acknowledge");
    this.#unacknowledged = 0;
    this.#link.acknowledge(this.#handlers.cursor());
  }

  /** @param {number} [code]  what a server closed with */
  #lost(code) {
    const opened = this.#openedAt !== null;
    if (opened) this.#backoff.ended(this.#ports.now() - this.#openedAt, code);
    if (DOUBTS.has(code)) this.#needsSync = true;
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
    const delay = this.#backoff.next();
    // One failure may be the network's. After more, ask first what has become of the conversation.
    if (this.#backoff.failures > 2 || this.#isTooQuiet) this.#needsSync = true;
    this.#become(Status.waiting);
    this.#timers.set("retry", delay, () => this.#proceed());
  }

  async #sync() {
    this.#close();
    this.#become(Status.syncing);
    this.#heardAt = this.#ports.now();
    const guarded = this.#guard();
    await this.#ports.sync().then(
      guarded((sync) => this.#synced(sync)),
      guarded((error) => (error.gone ? this.#become(Status.gone) : this.#retry())),
    );
  }

  #synced(sync) {
    this.#needsSync = false;
    this.#appliedSinceSync = false;
    this.#toldAt = this.#ports.now();
    try {
      this.#handlers.sync(sync);
    } catch (error) {
      this.#ports.report(error);
      this.#needsSync = true;
      this.#retry();
      return;
    }
    // Showing it may have raised a doubt.
    this.#proceed();
  }

  #close() {
    this.#epoch += 1;
    this.#timers.clearAll();
    this.#link?.close();
    this.#link = null;
    this.#openedAt = null;
    this.#unacknowledged = 0;
  }

  #become(status) {
    this.#status = status;
    this.#handlers.status(status, this.#backoff.failures);
  }
}
