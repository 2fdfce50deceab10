import { emptySnapshot, snapshotFrom } from "/static/js/snapshot.js";
import { completed, run, wire } from "./folding.js";
import { equal, test } from "./suite.js";

const FILES = ["lifecycle", "text", "tools", "order", "views"];

const load = (file) => fetch(`/vectors/${file}.json`).then((response) => response.json());
const CASES = (await Promise.all(FILES.map(load))).flat();

test("every vector folds to its snapshot", () => {
  for (const { name, steps, expect, raises } of CASES) {
    const { snapshot, raised } = run(emptySnapshot("g"), completed(steps));
    equal([name, raised ?? null], [name, raises ?? null]);
    equal([name, wire(snapshot)], [name, { ...wire(emptySnapshot("g")), ...expect }]);
  }
});

test("what blocks do not show is the tail", () => {
  for (const { name, steps, tail } of CASES.filter((one) => one.tail !== undefined)) {
    const { snapshot } = run(emptySnapshot("g"), completed(steps));
    equal([name, snapshot.text.slice(snapshot.shownUnits)], [name, tail]);
  }
});

test("a snapshot at any cut, then everything again, gives the same", () => {
  for (const { name, steps } of CASES.filter((one) => !one.raises)) {
    const all = completed(steps);
    const whole = run(emptySnapshot("g"), all).snapshot;
    for (let cut = 0; cut <= all.length; cut += 1) {
      const stored = snapshotFrom(wire(run(emptySnapshot("g"), all.slice(0, cut)).snapshot));
      const events = all.filter(({ type }) => type !== "block");
      // Views at the cut's own seq may come again in any number, so only what lies after them is replayed.
      const rest = [...events.slice(0, cut), ...all.slice(cut)];
      equal([name, cut, run(stored, rest).snapshot], [name, cut, whole]);
    }
  }
});

test("an event of an unknown type takes its place and changes nothing else", () => {
  const start = completed([{ type: "start", model: "m", pane: "p" }, { type: "thought_signature", data: "x" }]);
  const { snapshot } = run(emptySnapshot("g"), start);
  equal([snapshot.seq, snapshot.state, snapshot.data ?? null], [2, "running", null]);
});
