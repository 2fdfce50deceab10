/**
 * The names of protocol version 1, as streaming/README.md gives them. Data only.
 *
 * @typedef {object} Event        a fact; `seq` is dense from 1 within its generation
 * @property {string} gen
 * @property {number} attempt
 * @property {number} seq
 * @property {string} type
 * @property {number} at          epoch milliseconds, by the server's clock
 *
 * @typedef {object} BlockView    blocks 0…index show the first `length` code points of the text
 * @property {string} gen
 * @property {number} after_seq
 * @property {number} index
 * @property {string} html        already sanitised by the server
 * @property {boolean} sealed
 * @property {number} length
 *
 * @typedef {object} CancelView   somebody asked a generation to stop
 * @property {string} gen
 * @property {number} at
 * @property {string} by
 *
 * @typedef {object} Turn
 * @property {string} id
 * @property {string} prompt
 * @property {number|string} created_at
 * @property {object[]} generations   snapshots by number, each with `number`, `continues` and `place`, and while it
 *   is live with `stop_key`
 *
 * @typedef {object} SyncDocument
 * @property {{id: string, title: string}} conversation
 * @property {string} cursor
 * @property {{id: string, model: string, params: object}[]} panes
 * @property {Turn[]} turns
 */

export const State = Object.freeze({
  queued: "queued",
  running: "running",
  awaitingApproval: "awaiting_approval",
  completed: "completed",
  cancelled: "cancelled",
  failed: "failed",
  interrupted: "interrupted",
});

const TERMINAL = new Set([State.completed, State.cancelled, State.failed, State.interrupted]);

export const isTerminal = (state) => TERMINAL.has(state);
export const isLive = (state) => !TERMINAL.has(state);

export const DRIVER_LOST = "driver_lost";

/** What an events frame may hold besides events. A view has no seq. */
export const View = Object.freeze({ block: "block", turn: "turn", cancel: "cancel" });

export const Frame = Object.freeze({ events: "events", snapshot: "snapshot", resync: "resync", renew: "renew", ping: "ping" });

/** What a server closes a WebSocket with; any other code is the network's. */
export const Close = Object.freeze({
  invalid: 4400,
  nothingHere: 4404,
  tooMany: 4429,
  fault: 4500,
  leaving: 4502,
  unavailable: 4503,
});

const WORKING = {
  text_delta: State.running,
  reasoning_delta: State.running,
  tool_delta: State.running,
  tool_complete: State.running,
  tool_result: State.running,
  step: State.running,
  usage: State.running,
  resumed: State.running,
};
const ENDING = { cancelled: State.cancelled, error: State.failed };

/** Twin of streaming/lifecycle.py. An error with code driver_lost leads to interrupted instead. */
export const TRANSITIONS = Object.freeze({
  [State.queued]: { start: State.running, ...ENDING },
  [State.running]: { ...WORKING, ...ENDING, done: State.completed },
  [State.awaitingApproval]: { tool_result: State.running, resumed: State.running, ...ENDING },
  [State.completed]: {},
  [State.cancelled]: {},
  [State.failed]: {},
  [State.interrupted]: {},
});

const EVENT_TYPES = new Set(Object.values(TRANSITIONS).flatMap((row) => Object.keys(row)));

export const isKnownEvent = (type) => EVENT_TYPES.has(type);
