import { UNKNOWN, duration, metrics, pageTitle, stateText, timingRows } from "/static/js/format.js";
import { noticeOf } from "/static/js/notices.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { equal, test } from "./suite.js";

const snapshot = (fields) => ({ ...emptySnapshot("g"), ...fields });

test("durations are short", () => {
  equal([12, 999, 1500, 59_000, 61_000].map(duration), ["12 ms", "999 ms", "1.5 s", "59 s", "1 min 1 s"]);
});

test("what did not happen is a dash", () => equal([null, undefined, -5, NaN].map(duration), Array(4).fill(UNKNOWN)));

test("nothing is known of a queued answer", () => {
  equal(metrics(snapshot(), undefined, 1000), { firstToken: UNKNOWN, tokens: UNKNOWN, rate: UNKNOWN });
});

test("live numbers are estimates and say so", () => {
  const live = snapshot({ state: "running", text: "x".repeat(400) });
  const pace = { firstAt: 2000, lastAt: 4000, units: 396, whole: true };
  equal(metrics(live, pace, 1500), { firstToken: "500 ms", tokens: "~100", rate: "~50/s" });
});

test("a first token that this page did not see is unknown while live", () => {
  const live = snapshot({ state: "running", text: "abc" });
  equal(metrics(live, { firstAt: 2000, lastAt: 2000, units: 0, whole: false }, 1500).firstToken, UNKNOWN);
});

test("final numbers come from the server", () => {
  const done = snapshot({
    state: "completed", text: "abc", usage: { source: "upstream", output: 101 },
    timings: { queued_at: 1000, first_token_at: 1250, last_token_at: 3250 },
  });
  equal(metrics(done, undefined, 0), { firstToken: "250 ms", tokens: "101", rate: "50/s" });
});

test("an estimated total is marked", () => {
  equal(metrics(snapshot({ usage: { source: "estimated", output: 1200 } }), undefined, 0).tokens, "~1,200");
});

test("timing rows hold only what happened", () => {
  const done = snapshot({ timings: { queued_at: 1000, started_at: 1010, ended_at: 3000 }, cancel: { latency_ms: 41 } });
  equal(timingRows(done), [["Started", "10 ms"], ["Ended", "2.0 s"], ["Stopped within", "41 ms"]]);
});

test("a state has a word", () => {
  const words = [
    snapshot(), snapshot({ state: "running" }), snapshot({ state: "running", reasoning: "x" }),
    snapshot({ state: "running", text: "x" }), snapshot({ state: "completed", finish: "stop" }),
    snapshot({ state: "completed", finish: "length" }), snapshot({ state: "cancelled" }),
    snapshot({ state: "failed" }), snapshot({ state: "interrupted" }),
    snapshot({ state: "completed", finish: "unknown" }),
  ].map(stateText);
  equal(words, [
    "Waiting", "Waiting", "Thinking", "Writing", "Done", "Cut at the length limit", "Stopped", "Failed", "Interrupted",
    "Done · finish not stated",
  ]);
});

test("a good end needs no notice", () => equal(noticeOf(snapshot({ state: "completed", text: "x", finish: "stop" })), null));

test("an answer of nothing that can be seen is told as an empty one", () => {
  const texts = ["", " \n", "\u200b\u2060", "\u{e0041}\u{e0042}", "\u202e\u0000", "\u3164\ud800", "\u0301", "😀", "0"];
  const told = texts.map((text) => noticeOf(snapshot({ state: "completed", text, finish: "stop" }))?.text ?? "");
  const empty = "The model ended without an answer.";
  equal(told, [empty, empty, empty, empty, empty, empty, "", "", ""]);
});

test("a stop before anything could be seen does not call the answer partial", () => {
  equal(noticeOf(snapshot({ state: "cancelled", text: "\u200b" })).text, "Nothing had been written yet.");
});

test("an end of which nobody said why is told as one", () => {
  const ended = (text) => noticeOf(snapshot({ state: "completed", finish: "unknown", text })).text;
  equal(ended("x"), "The model service did not say why this answer ended, so it may not be whole.");
  equal(ended(""), "The model ended without an answer.");
});

test("a failure says what happened and that the text is partial", () => {
  const failed = snapshot({ state: "failed", text: "x", error: { message: "It broke off. Try again." } });
  equal(noticeOf(failed), { title: "Failed", text: "It broke off. Try again. The text above is kept, and is partial." });
});

test("a stop that the model did not confirm says so", () => {
  const stopped = snapshot({ state: "cancelled", text: "x", cancel: { upstream: "unproven" } });
  equal(noticeOf(stopped).text, "This answer is partial. The model did not confirm that it stopped.");
});

test("a hidden tab tells what its answers do", () => {
  const title = (more) => pageTitle({ title: "Tides", hidden: true, live: 0, finishedWhileHidden: false, ...more });
  equal(title({ live: 2 }), "… Tides · Sidestream");
  equal(title({ finishedWhileHidden: true }), "✓ Tides · Sidestream");
  equal(title({ hidden: false, live: 2 }), "Tides · Sidestream");
});

test("a place in the line is told in words", () => {
  const places = [1, 2, 3, 11, 22, 113].map((place) => stateText(snapshot({ place })));
  equal(places, [
    "Queued, next in line", "Queued, 2nd in line", "Queued, 3rd in line",
    "Queued, 11th in line", "Queued, 22nd in line", "Queued, 113th in line",
  ]);
});

test("what was asked to stop says so until it has ended", () => {
  const cancel_requested = { at: 1, by: "user" };
  const words = ["queued", "running", "cancelled"].map((state) => stateText(snapshot({ state, cancel_requested, text: "x" })));
  equal(words, ["Stopping", "Stopping", "Stopped"]);
});
