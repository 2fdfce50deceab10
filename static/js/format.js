/** Numbers and states as a person reads them. What is not known is a dash, never a guess. */

import { State, isLive } from "./protocol.js";

export const UNKNOWN = "–";

// English text has about four characters to a token. Used only while the upstream has not said more.
const UNITS_A_TOKEN = 4;

export function duration(ms) {
  if (ms == null || !Number.isFinite(ms) || ms < 0) return UNKNOWN;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const count = (value) => value.toLocaleString("en-US");

/** Seconds between two server times, or unknown when either did not happen. */
const span = (from, to) => (from == null || to == null ? null : to - from);

/**
 * The few numbers of a pane's header.
 *
 * @param {object} snapshot
 * @param {import("./conversation.js").Pace|undefined} pace  what this page saw, for a live answer
 * @param {number|null} askedAt  epoch milliseconds of the prompt
 * @returns {{firstToken: string, tokens: string, rate: string}}
 */
export function metrics(snapshot, pace, askedAt) {
  const { timings } = snapshot;
  const tokens = tokenCount(snapshot);
  return {
    firstToken: duration(firstTokenMs(timings, pace, askedAt)),
    tokens: tokens.text,
    rate: rate(snapshot, tokens, pace),
  };
}

function firstTokenMs(timings, pace, askedAt) {
  if (timings.first_token_at != null) return span(timings.queued_at ?? timings.started_at, timings.first_token_at);
  return pace?.whole ? span(askedAt, pace.firstAt) : null;
}

function tokenCount({ usage, text, reasoning }) {
  if (usage?.output != null) {
    const mark = usage.source === "estimated" ? "~" : "";
    return { value: usage.output, text: `${mark}${count(usage.output)}`, mark };
  }
  const units = text.length + reasoning.length;
  if (units === 0) return { value: 0, text: UNKNOWN, mark: "" };
  const value = Math.max(1, Math.round(units / UNITS_A_TOKEN));
  return { value, text: `~${count(value)}`, mark: "~" };
}

function rate({ state, timings }, tokens, pace) {
  if (isLive(state)) return perSecond(pace && pace.units / UNITS_A_TOKEN, pace && pace.lastAt - pace.firstAt, "~");
  return perSecond(tokens.value - 1, span(timings.first_token_at, timings.last_token_at), tokens.mark);
}

function perSecond(tokens, ms, mark) {
  // Below a fifth of a second a rate says more about the clock than about the model.
  if (!(tokens > 0) || !(ms >= 200)) return UNKNOWN;
  const value = (tokens * 1000) / ms;
  return `${mark}${value.toFixed(value < 10 ? 1 : 0)}/s`;
}

/** Rows for the timings fold: every step that happened, as time since the prompt was queued. */
export function timingRows({ timings, usage, cancel, resumed }) {
  const since = (at) => span(timings.queued_at, at);
  const rows = [
    ["Started", since(timings.started_at)],
    ["Connected", since(timings.connected_at)],
    ["First token", since(timings.first_token_at)],
    ["Last token", since(timings.last_token_at)],
    ["Stop asked", since(timings.cancel_asked_at)],
    ["Ended", since(timings.ended_at)],
    ["Longest gap", timings.longest_gap_ms],
    ["Stopped within", cancel?.latency_ms],
  ].filter(([, ms]) => ms != null);
  return [
    ...rows.map(([name, ms]) => [name, duration(ms)]),
    ...[["Input tokens", usage?.input], ["Cached tokens", usage?.cached], ["Reasoning tokens", usage?.reasoning]]
      .filter(([, value]) => value != null)
      .map(([name, value]) => [name, count(value)]),
    ...(resumed > 0 ? [["Resumed", resumed === 1 ? "once" : `${resumed} times`]] : []),
  ];
}

const STATE_TEXT = {
  [State.queued]: "Waiting",
  [State.awaitingApproval]: "Needs approval",
  [State.cancelled]: "Stopped",
  [State.failed]: "Failed",
  [State.interrupted]: "Interrupted",
};

const FINISH_TEXT = {
  length: "Cut at the length limit",
  content_filter: "Cut by the provider’s filter",
  refusal: "Declined",
  tool_calls: "Asks for a tool",
  pause: "Paused by the provider",
  unknown: "Done · finish not stated",
};

const ENDINGS = { one: "st", two: "nd", few: "rd", other: "th" };
const ordinals = new Intl.PluralRules("en-US", { type: "ordinal" });

export const ordinal = (n) => `${count(n)}${ENDINGS[ordinals.select(n)]}`;

/** A few words for what a generation is doing. */
export function stateText({ state, text, reasoning, finish, place, cancel_requested: asked, stop_kept: isKept }) {
  if (isLive(state) && asked) return "Stopping";
  if (isLive(state) && isKept) return "Stops when connected";
  if (state === State.queued && place != null) return `Queued, ${place === 1 ? "next" : ordinal(place)} in line`;
  if (state === State.running) {
    if (text) return "Writing";
    return reasoning ? "Thinking" : "Waiting";
  }
  if (state === State.completed) return FINISH_TEXT[finish] ?? "Done";
  return STATE_TEXT[state];
}

/** What the tab is called. A hidden tab says whether answers are still coming or have come. */
export function pageTitle({ title, hidden, live, finishedWhileHidden }) {
  const name = `${title || "New conversation"} · Sidestream`;
  if (!hidden) return name;
  if (live > 0) return `… ${name}`;
  return finishedWhileHidden ? `✓ ${name}` : name;
}

/** Server times come as ISO text or epoch milliseconds. */
export function epochMs(value) {
  const ms = new Date(value).getTime();
  return Number.isNaN(ms) ? null : ms;
}
