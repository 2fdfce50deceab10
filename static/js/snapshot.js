/**
 * A generation as folded up to a seq, and the one reducer: twin of streaming/snapshot.py.
 * tests/vectors/*.json hold both to the same meaning.
 *
 * Besides the protocol's fields a snapshot knows `shownUnits`, the index in `text` at which the
 * plain tail begins. It is counted on from the last view, so that counting is linear in the answer.
 */

import { advance } from "./code-points.js";
import { DRIVER_LOST, State, TRANSITIONS, isKnownEvent, isTerminal } from "./protocol.js";

/** An event beyond the next seq: the reader has to ask for a snapshot. */
export class SequenceGap extends Error {
  constructor(expected, got) {
    super(`expected seq ${expected}, got ${got}`);
    this.name = "SequenceGap";
  }
}

/** The lifecycle has no row for this event in this state. */
export class IllegalTransition extends Error {
  constructor(type, state) {
    super(`${type} may not follow in state ${state}`);
    this.name = "IllegalTransition";
  }
}

const EMPTY = Object.freeze({
  state: State.queued, attempt: 0, seq: 0, model: "", pane: "", params: {},
  text: "", reasoning: "", tools: [], steps: [], usage: null, finish: null, error: null, cancel: null,
  cancel_requested: null, resumed: 0, timings: {}, blocks: [], shown: 0, rendered_seq: 0, shownUnits: 0,
});

export const emptySnapshot = (gen) => ({ ...EMPTY, gen });

/** Read the JSON form that sync documents and snapshot frames carry. */
export function snapshotFrom(data) {
  const snapshot = { ...EMPTY, ...data };
  return { ...snapshot, shownUnits: advance(snapshot.text, 0, snapshot.shown) };
}

/** Apply one event. Events at or below the snapshot's seq are duplicates and change nothing. */
export function fold(snapshot, event) {
  if (event.seq <= snapshot.seq) return snapshot;
  if (event.seq !== snapshot.seq + 1) throw new SequenceGap(snapshot.seq + 1, event.seq);
  const place = { seq: event.seq, attempt: event.attempt };
  // A newer server may know more types than this page does. The event still takes its place.
  if (!isKnownEvent(event.type)) return { ...snapshot, ...place };
  const state = after(snapshot.state, event);
  const answered = isTerminal(state) ? { cancel_requested: null } : {};
  return { ...snapshot, ...CHANGES[event.type](snapshot, event), ...place, ...answered, state };
}

/** Note that somebody asked to stop. After the end that changes nothing. */
export function foldCancel(snapshot, { at, by }) {
  return isTerminal(snapshot.state) ? snapshot : { ...snapshot, cancel_requested: { at, by } };
}

/** Apply a block view. One that is older than the newest applied changes nothing. */
export function foldView(snapshot, view) {
  if (view.after_seq < snapshot.rendered_seq) return snapshot;
  const blocks = [...snapshot.blocks];
  while (blocks.length <= view.index) blocks.push({ html: "", sealed: false });
  blocks[view.index] = { html: view.html, sealed: view.sealed };
  return { ...snapshot, blocks, rendered_seq: view.after_seq, ...shownBy(snapshot, view.length) };
}

function shownBy({ text, shown, shownUnits }, length) {
  const units = length >= shown ? advance(text, shownUnits, length - shown) : advance(text, 0, length);
  return { shown: length, shownUnits: units };
}

function after(state, event) {
  const next = TRANSITIONS[state][event.type];
  if (next === undefined) throw new IllegalTransition(event.type, state);
  return event.type === "error" && event.code === DRIVER_LOST ? State.interrupted : next;
}

const ERROR_FIELDS = ["code", "message", "retryable", "resumable", "said"];
const USAGE_FIELDS = ["source", "input", "output", "cached", "reasoning"];

const pick = (event, names) =>
  Object.fromEntries(names.filter((name) => event[name] != null).map((name) => [name, event[name]]));

const CHANGES = {
  start: (_, { model, pane, params = {} }) => ({ model, pane, params }),
  text_delta: ({ text }, event) => ({ text: text + event.text }),
  reasoning_delta: ({ reasoning }, event) => ({ reasoning: reasoning + event.text }),
  tool_delta: ({ tools }, event) => ({
    tools: changeTool(tools, event.call, (tool) => ({
      name: tool.name || event.name || "",
      arguments: tool.arguments + event.arguments,
    })),
  }),
  tool_complete: ({ tools }, event) => ({
    tools: changeTool(tools, event.call, () => ({ name: event.name, arguments: event.arguments, complete: true })),
  }),
  tool_result: ({ tools }, event) => ({
    tools: changeTool(tools, event.call, () => ({ outcome: event.outcome, result: event.result })),
  }),
  step: ({ steps }, { label }) => ({ steps: [...steps, label] }),
  usage: (_, event) => ({ usage: pick(event, USAGE_FIELDS) }),
  resumed: ({ resumed }) => ({ resumed: resumed + 1 }),
  done: (_, { finish, timings = {} }) => ({ finish, timings }),
  cancelled: (_, { reason, upstream, latency_ms, timings = {} }) => ({
    cancel: { reason, upstream, latency_ms },
    timings,
  }),
  error: (_, event) => ({ error: pick(event, ERROR_FIELDS), timings: event.timings ?? {} }),
};

function changeTool(tools, call, change) {
  const known = tools.some((tool) => tool.call === call);
  const blank = { call, name: "", arguments: "", complete: false, outcome: null, result: null };
  const all = known ? tools : [...tools, blank];
  return all.map((tool) => (tool.call === call ? { ...tool, ...change(tool) } : tool));
}
