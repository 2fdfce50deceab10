import { Conversation } from "/static/js/conversation.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { equal, test } from "./suite.js";

const snapshot = (gen, fields = {}) => {
  const { shownUnits, ...wire } = emptySnapshot(gen);
  return { ...wire, pane: `pane of ${gen}`, ...fields };
};
const turn = (id, ...generations) => ({ id, prompt: `prompt of ${id}`, created_at: 1000, generations });
const sync = (...turns) => ({ v: 1, conversation: { id: "c", title: "T" }, cursor: "1-0", panes: [], turns });
const event = (gen, seq, type, fields = {}) => ({ v: 1, gen, attempt: 1, seq, at: 1000 * seq, type, ...fields });
const start = (gen) => event(gen, 1, "start", { model: "m", pane: "p", params: {} });
const text = (gen, seq, value, more = {}) => event(gen, seq, "text_delta", { text: value, ...more });
const frame = (cursor, ...events) => ({ type: "events", cursor, events });

const twoPanes = () => new Conversation(sync(turn("t", snapshot("a"), snapshot("b"))));

test("a frame folds into its generations and moves the cursor", () => {
  const conversation = twoPanes();
  const { changed, gap } = conversation.apply(frame("2-0", start("a"), text("a", 2, "hi")));
  equal([[...changed], gap, conversation.cursor], [["a"], false, "2-0"]);
  equal(conversation.generation("a").text, "hi");
});

test("panes do not touch each other", () => {
  const conversation = twoPanes();
  conversation.apply(frame("2-0", start("a"), start("b"), text("a", 2, "A"), text("b", 2, "B"), text("a", 3, "A")));
  equal([conversation.generation("a").text, conversation.generation("b").text], ["AA", "B"]);
});

test("a gap leaves the cursor where it was", () => {
  const conversation = twoPanes();
  const { gap } = conversation.apply(frame("2-0", start("a"), text("a", 3, "x")));
  equal([gap, conversation.cursor], [true, "1-0"]);
});

test("duplicates change nothing", () => {
  const conversation = twoPanes();
  conversation.apply(frame("2-0", start("a"), text("a", 2, "hi")));
  const { changed, gap } = conversation.apply(frame("3-0", start("a"), text("a", 2, "hi")));
  equal([[...changed], gap, conversation.generation("a").text], [[], false, "hi"]);
});

test("an event that the lifecycle does not allow asks for sync", () => {
  const conversation = twoPanes();
  equal(conversation.apply(frame("2-0", text("a", 1, "x"))).gap, true);
});

test("an event of a generation that nobody told of asks for sync", () => {
  equal(twoPanes().apply(frame("2-0", start("z"))).gap, true);
});

test("what a fenced-out driver wrote is left out", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "running", attempt: 3, seq: 4, text: "abc" }))));
  const { gap } = conversation.apply(frame("2-0", text("a", 5, "old", { attempt: 2 })));
  equal([gap, conversation.generation("a").text, conversation.generation("a").seq], [false, "abc", 4]);
});

test("a new attempt that begins before what was shown asks for sync", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "running", attempt: 1, seq: 4, text: "abc" }))));
  const end = { code: "driver_lost", message: "", retryable: true, resumable: false, text_length: 2, timings: {} };
  equal(conversation.apply(frame("2-0", event("a", 4, "error", { attempt: 2, ...end }))).gap, true);
});

test("an ended answer that the log is told again stays as it is", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "completed", attempt: 1, seq: 4, text: "abc" }))));
  const { changed, gap } = conversation.apply(frame("2-0", text("a", 2, "abc", { attempt: 2 })));
  equal([[...changed], gap], [[], false]);
});

test("a new attempt goes on", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "running", attempt: 1, seq: 4, text: "abc" }))));
  conversation.apply(frame("2-0", text("a", 5, "d", { attempt: 2 })));
  equal(conversation.generation("a").text, "abcd");
});

test("an unknown event type takes its seq and moves the cursor", () => {
  const conversation = twoPanes();
  const { gap } = conversation.apply(frame("2-0", start("a"), event("a", 2, "new_thing"), text("a", 3, "x")));
  equal([gap, conversation.cursor, conversation.generation("a").text], [false, "2-0", "x"]);
});

test("an unknown view moves the cursor only", () => {
  const conversation = twoPanes();
  const { changed, gap } = conversation.apply(frame("2-0", { v: 1, type: "mark", gen: "a", note: "x" }, { v: 1, type: "hint" }));
  equal([[...changed], gap, conversation.cursor], [[], false, "2-0"]);
});

test("a view about text that is not there asks for sync", () => {
  const view = { v: 1, type: "block", gen: "a", after_seq: 7, index: 0, html: "<p>x</p>", sealed: true, length: 5 };
  equal(twoPanes().apply(frame("2-0", view)).gap, true);
});

test("a turn view adds a turn, once", () => {
  const conversation = twoPanes();
  const view = { v: 1, type: "turn", turn: turn("u", snapshot("d")) };
  equal(conversation.apply(frame("2-0", view)).turns, true);
  equal(conversation.apply(frame("3-0", view)).turns, false);
  equal(conversation.turns.map(({ id }) => id), ["t", "u"]);
});

test("a turn that the request answered with does not forget what events told", () => {
  const conversation = twoPanes();
  conversation.apply(frame("2-0", { v: 1, type: "turn", turn: turn("u", snapshot("d")) }, start("d"), text("d", 2, "x")));
  equal(conversation.addTurn(turn("u", snapshot("d"))), []);
  equal(conversation.generation("d").text, "x");
});

test("a retry joins its turn", () => {
  const conversation = twoPanes();
  equal(conversation.addTurn(turn("t", snapshot("a"), snapshot("b"), snapshot("b2"))), ["b2"]);
  equal(conversation.turns[0].generations, ["a", "b", "b2"]);
});

test("a snapshot frame replaces what is known", () => {
  const conversation = twoPanes();
  const { changed } = conversation.apply({
    type: "snapshot", cursor: "8-0", generations: [snapshot("a", { state: "running", seq: 9, text: "long" })],
  });
  equal([[...changed], conversation.cursor, conversation.generation("a").text], [["a"], "8-0", "long"]);
});

test("a snapshot of an unknown generation asks for sync, and is kept out until its turn is known", () => {
  const conversation = twoPanes();
  const generations = [snapshot("z"), snapshot("a", { state: "running", seq: 2, text: "hi" })];
  const { gap, changed } = conversation.apply({ type: "snapshot", cursor: "8-0", generations });
  equal([gap, conversation.cursor, conversation.generation("z") ?? null], [true, "1-0", null]);
  equal([[...changed], conversation.generation("a").text], [["a"], "hi"]);
});

test("a sync document is the whole truth, also where it knows less", () => {
  const conversation = twoPanes();
  conversation.apply(frame("2-0", start("a"), text("a", 2, "lost")));
  conversation.replace(sync(turn("t", snapshot("a", { state: "interrupted", seq: 2 }), snapshot("b"))));
  equal([conversation.generation("a").text, conversation.generation("a").state], ["", "interrupted"]);
});

test("live are those that have not ended", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "completed" }), snapshot("b"))));
  equal(conversation.live.map(({ gen }) => gen), ["b"]);
});

test("the pace counts what came after the first delta, by the server's clock", () => {
  const conversation = twoPanes();
  conversation.apply(frame("2-0", start("a"), text("a", 2, "abcd"), text("a", 3, "efgh"), text("a", 4, "ij")));
  equal(conversation.pace("a"), { firstAt: 2000, lastAt: 4000, units: 6, whole: true });
});

test("a pace that began in the middle says so", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "running", attempt: 1, seq: 4, text: "abc" }))));
  conversation.apply(frame("2-0", text("a", 5, "d")));
  equal(conversation.pace("a").whole, false);
});

const cancelled = (gen) => ({ v: 1, type: "cancel", gen, at: 5000, by: "user" });

test("a cancel request shows in its generation only", () => {
  const conversation = twoPanes();
  const { changed, gap } = conversation.apply(frame("2-0", start("a"), cancelled("a")));
  equal([[...changed], gap, conversation.cursor], [["a"], false, "2-0"]);
  equal(conversation.generation("a").cancel_requested, { at: 5000, by: "user" });
  equal(conversation.generation("b").cancel_requested, null);
});

test("a cancel request for a generation that nobody told of asks for sync", () => {
  equal(twoPanes().apply(frame("2-0", cancelled("z"))).gap, true);
});

test("a request to stop that was taken shows before the log tells of it", () => {
  const conversation = twoPanes();
  equal([conversation.noteCancel("a"), conversation.noteCancel("a"), conversation.noteCancel("z")], [true, false, false]);
  conversation.apply(frame("2-0", cancelled("a")));
  equal(conversation.generation("a").cancel_requested, { at: 5000, by: "user" });
});

test("a request to stop that the server has forgotten is forgotten with the next sync", () => {
  const conversation = twoPanes();
  conversation.noteCancel("a");
  conversation.replace(sync(turn("t", snapshot("a"), snapshot("b"))));
  equal(conversation.generation("a").cancel_requested, null);
});

test("an answer that has ended cannot be asked to stop", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { state: "completed" }))));
  equal([conversation.noteCancel("a"), conversation.generation("a").cancel_requested], [false, null]);
});

test("a further answer to a known turn is added to it", () => {
  const conversation = twoPanes();
  const notice = { v: 1, type: "turn", turn: turn("t", snapshot("c", { number: 3, continues: "a" })) };
  const { turns, gap } = conversation.apply(frame("2-0", notice));
  equal([turns, gap, conversation.turns.map(({ generations }) => generations)], [true, false, [["a", "b", "c"]]]);
  equal(conversation.generation("c").continues, "a");
});

test("a snapshot frame keeps what only the row knows", () => {
  const conversation = new Conversation(sync(turn("t", snapshot("a", { number: 7, continues: "x", place: 2 }))));
  conversation.apply({ type: "snapshot", cursor: "2-0", generations: [snapshot("a", { text: "hi", seq: 2, state: "running" })] });
  const { text: shown, number, continues } = conversation.generation("a");
  equal([shown, number, continues], ["hi", 7, "x"]);
});

test("a place in the line is news once", () => {
  const conversation = twoPanes();
  equal([conversation.setPlace("a", 3), conversation.setPlace("a", 3), conversation.setPlace("z", 1)], [true, false, false]);
  equal(conversation.generation("a").place, 3);
});

test("a turn that was just added shows no place yet", () => {
  const conversation = twoPanes();
  conversation.addTurn(turn("u", snapshot("c", { place: 1 })));
  equal(conversation.generation("c").place, null);
});

test("the turn of a generation is found", () => equal(twoPanes().turnOf("b").id, "t"));
