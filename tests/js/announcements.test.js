import { Announcements, GAP_MS, restored } from "/static/js/announcements.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { equal, test } from "./suite.js";

const snapshot = (gen, fields) => ({ ...emptySnapshot(gen), ...fields });
const writing = (gen) => snapshot(gen, { state: "running", text: "Hi" });
const finished = (gen) => snapshot(gen, { state: "completed", text: "Hello there" });

/** What is said from `from` on, with the time of each sentence. */
function spoken(announcements, from = 0, until = 20_000) {
  const said = [];
  for (let now = from; now <= until; now += 100) {
    const next = announcements.next(now);
    if (next) said.push([now, next.text]);
  }
  return said;
}

test("the first text and the end are told", () => {
  const announcements = new Announcements();
  announcements.observe("Careful", writing("a"));
  equal(spoken(announcements, 0, 500), [[0, "Careful is answering."]]);
  announcements.observe("Careful", finished("a"));
  equal(spoken(announcements, 2000), [[2000, "Careful finished, 2 words."]]);
});

test("text that grows is not told", () => {
  const announcements = new Announcements();
  announcements.observe("Careful", writing("a"));
  spoken(announcements, 0, 2000);
  for (let n = 0; n < 50; n += 1) announcements.observe("Careful", writing("a"));
  equal(spoken(announcements, 3000), []);
});

test("two sentences are at least a second apart", () => {
  const announcements = new Announcements();
  announcements.say("One.");
  announcements.say("Two.");
  const [[first], [second]] = spoken(announcements);
  equal(second - first >= GAP_MS, true);
});

test("an answer that begins and ends before its turn is told once", () => {
  const announcements = new Announcements();
  announcements.say("Sent.");
  announcements.next(0);
  announcements.observe("Careful", writing("a"));
  announcements.observe("Careful", finished("a"));
  equal(spoken(announcements, 100).map(([, text]) => text), ["Careful finished, 2 words."]);
});

test("many at once become one sentence", () => {
  const announcements = new Announcements();
  ["a", "b", "c", "d"].forEach((gen) => announcements.observe(gen, writing(gen)));
  equal(spoken(announcements).map(([, text]) => text), ["4 answering."]);
});

test("a summary keeps every failure", () => {
  const announcements = new Announcements();
  const failed = snapshot("a", { state: "failed", error: { message: "No key." } });
  announcements.observe("Careful", failed);
  ["b", "c"].forEach((gen) => announcements.observe(gen, finished(gen)));
  equal(announcements.next(0), { text: "2 ended. Careful failed. No key.", urgent: true });
});

test("a failure is urgent, a stop is not", () => {
  const announcements = new Announcements();
  announcements.observe("Careful", snapshot("a", { state: "failed", error: { message: "No key." } }));
  announcements.observe("Lively", snapshot("b", { state: "cancelled" }));
  equal(announcements.next(0), { text: "Careful failed. No key.", urgent: true });
  equal(announcements.next(GAP_MS), { text: "Lively stopped.", urgent: false });
});

test("what was there when the page came is not told", () => {
  const announcements = new Announcements();
  announcements.know(finished("a"));
  announcements.observe("Careful", finished("a"));
  equal(spoken(announcements), []);
});

test("the same sentence twice in a row is told once", () => {
  const announcements = new Announcements();
  announcements.say("Copied.");
  announcements.say("Copied.");
  equal(spoken(announcements).length, 1);
});

test("restoring is told only when something still runs", () => {
  equal(restored([finished("a"), writing("b")]), "Restored 2 answers, 1 still running.");
  equal(restored([finished("a")]), "");
});
