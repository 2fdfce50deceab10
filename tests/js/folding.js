/** Folds whole logs, for the tests that compare the browser's reducer with the server's. */

import { emptySnapshot, fold, foldCancel, foldView } from "/static/js/snapshot.js";

const VIEWS = { block: foldView, cancel: foldCancel };

/** The protocol's fields only, as they go over the wire. */
export function wire({ shownUnits, ...fields }) {
  return JSON.parse(JSON.stringify(fields));
}

/** Fill in what the vectors leave out. */
export function completed(steps) {
  let seq = 0;
  return steps.map((step) => {
    if (step.type in VIEWS) return { v: 1, gen: "g", ...step };
    seq += 1;
    return { v: 1, gen: "g", attempt: 1, seq, at: 1000, ...step };
  });
}

const apply = (snapshot, step) => (VIEWS[step.type] ?? fold)(snapshot, step);

/** Fold until a step raises. */
export function run(start, steps) {
  let snapshot = start;
  for (const step of steps) {
    try {
      snapshot = apply(snapshot, step);
    } catch (error) {
      return { snapshot, raised: error.name };
    }
  }
  return { snapshot, raised: undefined };
}

/** What a log comes to, as the server's test says it. */
export function outcome(steps) {
  const { snapshot, raised } = run(emptySnapshot("g"), completed(steps));
  return { snapshot: wire(snapshot), raised: raised ?? null, tail: snapshot.text.slice(snapshot.shownUnits) };
}
