/**
 * Several answers of one pane to one turn: which is shown, and whether another may be asked for. Pure.
 */

import { State, isTerminal } from "./protocol.js";

const CUT_FINISHES = new Set(["length", "pause"]);

/** An answer that ended, but not as the model meant it to. */
export const isCut = ({ state, finish }) =>
  isTerminal(state) && (state !== State.completed || CUT_FINISHES.has(finish));

export const canContinue = (snapshot) => isCut(snapshot) && snapshot.text !== "";

/**
 * The panes of a turn, in order, each with its answers by number.
 *
 * @param {object} turn
 * @param {(gen: string) => object} snapshotOf
 * @returns {{key: string, gens: string[]}[]}
 */
export function panesOf(turn, snapshotOf) {
  const panes = new Map();
  for (const gen of turn.generations) {
    const key = snapshotOf(gen).pane || gen;
    panes.set(key, [...(panes.get(key) ?? []), gen]);
  }
  return [...panes].map(([key, gens]) => ({ key, gens }));
}

/** What an answer goes on from, oldest first: each was given the texts of those before it. */
export function continuedBy(snapshot, snapshotOf) {
  const chain = [];
  for (let at = snapshot; at?.continues; at = chain[0]) chain.unshift(snapshotOf(at.continues));
  return chain.filter(Boolean);
}
