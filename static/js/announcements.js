/**
 * What a screen reader is told, and when. Pure: it is given snapshots and the time.
 *
 * The transcript itself is no live region: screen readers would read tokens, or nothing. One
 * announcer speaks status with at least a second between two sentences, because several changes
 * close together are dropped by some readers and repeated by others.
 */

import { State, isLive } from "./protocol.js";

export const GAP_MS = 1000;

// A reader cannot cancel what is queued, so what is late is summed up instead of read out.
const MAX_QUEUED = 2;

const words = (text) => {
  const n = text.split(/\s+/u).filter(Boolean).length;
  return `${n} ${n === 1 ? "word" : "words"}`;
};

const ENDINGS = {
  [State.completed]: (name, { text }) => `${name} finished, ${words(text)}.`,
  [State.cancelled]: (name) => `${name} stopped.`,
  [State.failed]: (name, { error }) => `${name} failed. ${error?.message ?? ""}`.trim(),
  [State.interrupted]: (name) => `${name} was interrupted. The partial answer is kept.`,
};

const hasBegun = ({ text, reasoning }) => text !== "" || reasoning !== "";

export class Announcements {
  #queue = [];
  #spokenAt = -Infinity;
  #last = "";
  #known = new Map();

  /** Remember a generation without a word: it was there when the page came. */
  know(snapshot) {
    this.#known.set(snapshot.gen, { state: snapshot.state, begun: hasBegun(snapshot) });
  }

  /** Note how a generation looks now and queue what is worth saying about it. */
  observe(name, snapshot) {
    const before = this.#known.get(snapshot.gen) ?? { state: State.queued, begun: false };
    this.know(snapshot);
    if (isLive(before.state) && !isLive(snapshot.state)) this.#ended(name, snapshot);
    else if (isLive(snapshot.state) && !before.begun && hasBegun(snapshot)) {
      this.#push({ gen: snapshot.gen, kind: "began", text: `${name} is answering.` });
    }
  }

  /** Queue a sentence that belongs to no generation. */
  say(text) {
    this.#push({ kind: "status", text });
  }

  /** Give the next sentence if its time has come, else null. */
  next(now) {
    if (this.#queue.length === 0 || now - this.#spokenAt < GAP_MS) return null;
    if (this.#queue.length > MAX_QUEUED) this.#queue = [summary(this.#queue)];
    const { text, urgent = false } = this.#queue.shift();
    if (text === this.#last && now - this.#spokenAt < 5 * GAP_MS) return this.next(now);
    this.#spokenAt = now;
    this.#last = text;
    return { text, urgent };
  }

  /** Milliseconds until `next` may give something, or null when nothing is queued. */
  wait(now) {
    return this.#queue.length === 0 ? null : Math.max(0, this.#spokenAt + GAP_MS - now);
  }

  #ended(name, snapshot) {
    // An answer that began and ended before its turn to be spoken of is told once.
    this.#queue = this.#queue.filter(({ gen }) => gen !== snapshot.gen);
    const urgent = snapshot.state === State.failed || snapshot.state === State.interrupted;
    this.#push({ gen: snapshot.gen, kind: "ended", text: ENDINGS[snapshot.state](name, snapshot), urgent });
  }

  #push(entry) {
    this.#queue.push(entry);
  }
}

function summary(entries) {
  const ended = entries.filter(({ kind }) => kind === "ended");
  const begun = entries.filter(({ kind }) => kind === "began").length;
  const failed = ended.filter(({ urgent }) => urgent);
  const ready = ended.length - failed.length;
  const parts = [
    begun > 0 ? `${begun} answering` : "",
    ready > 0 ? `${ready} ended` : "",
    ...failed.map(({ text }) => text.replace(/\.$/u, "")),
    ...entries.filter(({ kind }) => kind === "status").map(({ text }) => text.replace(/\.$/u, "")),
  ].filter(Boolean);
  return { text: `${parts.join(". ")}.`, urgent: failed.length > 0 };
}

/** One sentence for a page that came back to a conversation, or "" when there is nothing to restore. */
export function restored(generations) {
  const live = generations.filter(({ state }) => isLive(state)).length;
  if (live === 0) return "";
  const n = generations.length;
  return `Restored ${n} ${n === 1 ? "answer" : "answers"}, ${live} still running.`;
}
