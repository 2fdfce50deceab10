/**
 * What a page knows of one conversation, folded from a sync document and the frames after it.
 * No DOM, no connection: it says what changed, and whether the server has to be asked again.
 */

import { Frame, View, isLive } from "./protocol.js";
import { fold, foldCancel, foldView, snapshotFrom } from "./snapshot.js";

const DELTAS = new Set(["text_delta", "reasoning_delta"]);

/** What only a generation's row, or this page, knows: snapshot frames come from the log and do not say it. */
const rowOf = ({ number, continues, place, stop_key, stop_kept }) => ({ number, continues, place, stop_key, stop_kept });

export class Conversation {
  #turns = [];
  #generations = new Map();
  #paces = new Map();

  constructor(sync) {
    this.replace(sync);
  }

  /** Take a sync document as the whole truth, also where it knows less: the log may have lost a tail. */
  replace(sync) {
    this.id = sync.conversation.id;
    this.title = sync.conversation.title;
    this.cursor = sync.cursor;
    this.panes = sync.panes;
    this.#turns = [];
    this.#generations.clear();
    sync.turns.forEach((turn) => this.#addTurn(turn));
  }

  get turns() {
    return this.#turns;
  }

  /** Every generation, oldest turn first. */
  get generations() {
    return [...this.#generations.values()];
  }

  generation(gen) {
    return this.#generations.get(gen);
  }

  get live() {
    return this.generations.filter(({ state }) => isLive(state));
  }

  /** How fast deltas come, by the server's clock, as far as this page saw it: see `Pace`. */
  pace(gen) {
    return this.#paces.get(gen);
  }

  /**
   * Add a turn, or the generations of a known turn that are new. Gives the ids of what was added.
   *
   * Their places in the line are left out: most lines have moved before anybody could read them.
   */
  addTurn(turn) {
    const generations = turn.generations.map((data) => ({ ...data, place: null }));
    return this.#addTurn({ ...turn, generations });
  }

  /** Note where in the line a generation waits; the next is 1. Says whether that is news. */
  setPlace(gen, place) {
    const before = this.#generations.get(gen);
    if (before === undefined || before.place === place) return false;
    this.#generations.set(gen, { ...before, place });
    return true;
  }

  /** Note that a request to stop was taken; the log will say by whom and when. Says whether that is news. */
  noteCancel(gen) {
    const before = this.#generations.get(gen);
    if (before === undefined || !isLive(before.state) || before.cancel_requested !== null) return false;
    this.#generations.set(gen, foldCancel(before, { at: null, by: null }));
    return true;
  }

  /** Note whether a wish to stop waits here for the server. Says whether that is news. */
  noteKeptStop(gen, isKept) {
    const before = this.#generations.get(gen);
    if (before === undefined || (before.stop_kept ?? false) === isKept) return false;
    this.#generations.set(gen, { ...before, stop_kept: isKept });
    return true;
  }

  /** Take the state that an answer ended in from the server's word, where its log can be read no more. */
  noteEnd(gen, state) {
    const before = this.#generations.get(gen);
    if (before === undefined || !isLive(before.state)) return false;
    this.#generations.set(gen, { ...before, state, cancel_requested: null });
    return true;
  }

  /** The turn that a generation answers. */
  turnOf(gen) {
    return this.#turns.find(({ generations }) => generations.includes(gen));
  }

  #addTurn(turn) {
    const fresh = turn.generations.filter(({ gen }) => !this.#generations.has(gen));
    fresh.forEach((data) => this.#generations.set(data.gen, snapshotFrom(data)));
    const ids = fresh.map(({ gen }) => gen);
    const known = this.#turns.find(({ id }) => id === turn.id);
    if (known) known.generations.push(...ids);
    else this.#turns.push({ ...turn, generations: ids });
    return ids;
  }

  /**
   * Apply a frame.
   *
   * @returns {{changed: Set<string>, turns: boolean, gap: boolean}} the generations that look
   *   different now; whether turns were added; and whether something is missing. After a gap the
   *   cursor has not moved and the caller fetches sync.
   */
  apply(frame) {
    const outcome = { changed: new Set(), turns: false, gap: false };
    if (frame.type === Frame.snapshot) frame.generations.forEach((data) => this.#take(data, outcome));
    if (frame.type === Frame.events) {
      outcome.gap = !frame.events.every((entry) => this.#applyEntry(entry, outcome));
    }
    if (!outcome.gap && frame.cursor) this.cursor = frame.cursor;
    return outcome;
  }

  #take(data, outcome) {
    const before = this.#generations.get(data.gen);
    if (before === undefined) {
      // Nobody told of its turn, and without one it has no place.
      outcome.gap = true;
      return;
    }
    this.#generations.set(data.gen, snapshotFrom({ ...rowOf(before), ...data }));
    outcome.changed.add(data.gen);
  }

  /** Says false when the entry does not fit what is known. */
  #applyEntry(entry, outcome) {
    if (entry.type === View.turn) return this.#applyTurn(entry.turn, outcome);
    // Neither an event nor a view that this page knows: a newer server may send more.
    if (entry.gen === undefined) return true;
    const before = this.#generations.get(entry.gen);
    if (before === undefined) return false;
    if (entry.type === View.block) return this.#applyBlock(before, entry, outcome);
    if (entry.type === View.cancel) return this.#keep(before, foldCancel(before, entry), outcome);
    return this.#applyEvent(before, entry, outcome);
  }

  #applyTurn(turn, outcome) {
    const added = this.addTurn(turn);
    outcome.turns ||= added.length > 0;
    return true;
  }

  #applyBlock(before, view, outcome) {
    if (view.after_seq > before.seq) return false;
    return this.#keep(before, foldView(before, view), outcome);
  }

  #applyEvent(before, event, outcome) {
    // A view of a type that this page does not know has no seq.
    if (event.seq === undefined) return true;
    // The fence: what a driver wrote that has been taken over from is not part of the answer.
    if (event.attempt < before.attempt) return true;
    // The other way round: the log lost its end before a newer driver went on from there. What stands here
    // in this event's place is no part of the answer any more.
    if (event.attempt > before.attempt && event.seq <= before.seq && isLive(before.state)) return false;
    try {
      this.#keep(before, fold(before, event), outcome);
    } catch {
      // SequenceGap and IllegalTransition mean the same to a page: it has to ask.
      return false;
    }
    if (event.seq > before.seq && DELTAS.has(event.type)) this.#measure(before, event);
    return true;
  }

  #keep(before, snapshot, outcome) {
    if (snapshot !== before) {
      this.#generations.set(snapshot.gen, snapshot);
      outcome.changed.add(snapshot.gen);
    }
    return true;
  }

  /**
   * @typedef {object} Pace
   * @property {number} firstAt   when the first delta that this page saw was written
   * @property {number} lastAt
   * @property {number} units     what came after that first delta, in UTF-16 units
   * @property {boolean} whole    nothing had come before it
   */
  #measure(before, event) {
    const pace = this.#paces.get(event.gen);
    const next = pace
      ? { ...pace, lastAt: event.at, units: pace.units + event.text.length }
      : { firstAt: event.at, lastAt: event.at, units: 0, whole: before.text === "" && before.reasoning === "" };
    this.#paces.set(event.gen, next);
  }
}
