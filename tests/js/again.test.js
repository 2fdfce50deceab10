import { canContinue, continuedBy, isCut, panesOf } from "/static/js/again.js";
import { equal, test } from "./suite.js";

const ended = (state, fields = {}) => ({ state, finish: null, text: "Once upon", ...fields });
const among = (...snapshots) => {
  const known = new Map(snapshots.map((one) => [one.gen, one]));
  return (gen) => known.get(gen);
};

test("what was stopped, failed, interrupted or cut by its length is cut", () => {
  const cut = [ended("cancelled"), ended("failed"), ended("interrupted"), ended("completed", { finish: "length" })];
  equal(cut.map(isCut), [true, true, true, true]);
});

test("what ended well or has not ended is not cut", () => {
  const others = [ended("completed", { finish: "stop" }), ended("running"), ended("queued"), ended("completed", { finish: "refusal" })];
  equal(others.map(isCut), [false, false, false, false]);
});

test("only what has text is continued", () => {
  equal([ended("failed"), ended("failed", { text: "" })].map(canContinue), [true, false]);
});

test("a pane's answers stand together, the panes in the order of their first", () => {
  const known = among({ gen: "a", pane: "1" }, { gen: "b", pane: "2" }, { gen: "c", pane: "1" });
  equal(panesOf({ generations: ["a", "b", "c"] }, known), [{ key: "1", gens: ["a", "c"] }, { key: "2", gens: ["b"] }]);
});

test("an answer that nobody gave a pane stands alone", () => {
  const known = among({ gen: "a", pane: "" }, { gen: "b", pane: "" });
  equal(panesOf({ generations: ["a", "b"] }, known).map(({ gens }) => gens), [["a"], ["b"]]);
});

test("a continuation knows all that it goes on from, oldest first", () => {
  const known = among({ gen: "a" }, { gen: "b", continues: "a" }, { gen: "c", continues: "b" });
  equal(continuedBy(known("c"), known).map(({ gen }) => gen), ["a", "b"]);
  equal(continuedBy(known("a"), known), []);
});
