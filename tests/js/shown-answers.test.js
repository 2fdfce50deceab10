import { Conversation } from "/static/js/conversation.js";
import { ShownAnswers } from "/static/js/shown-answers.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { equal, test } from "./suite.js";

const answer = (gen, pane, model = "m") => {
  const { shownUnits, ...wire } = emptySnapshot(gen);
  return { ...wire, pane, model };
};
const turn = (id, ...generations) => ({ id, prompt: "Why?", created_at: 1000, generations });

function setUp(...turns) {
  const sync = { v: 1, conversation: { id: "c", title: "T" }, cursor: "1-0", panes: [], turns };
  const conversation = new Conversation(sync);
  const answers = new ShownAnswers(conversation, (model) => model.toUpperCase());
  const shown = (index = 0) => answers.of(conversation.turns[index]).map(({ gen }) => gen);
  return { conversation, answers, shown };
}

test("the newest answer of each pane is shown", () => {
  const { shown } = setUp(turn("t", answer("a", "p"), answer("b", "q"), answer("c", "p")));
  equal(shown(), ["c", "b"]);
});

test("an older answer is shown when it is asked for", () => {
  const { answers, shown } = setUp(turn("t", answer("a", "p"), answer("b", "q"), answer("c", "p")));
  equal([answers.choose("a"), shown()], [["a", "c"], ["a", "b"]]);
});

test("an answer that comes later is shown again", () => {
  const { conversation, answers, shown } = setUp(turn("t", answer("a", "p"), answer("c", "p")));
  answers.choose("a");
  conversation.addTurn(turn("t", answer("d", "p")));
  equal(shown(), ["d"]);
});

test("panes of one model have names of their own", () => {
  const { answers } = setUp(turn("t", answer("a", "p"), answer("b", "q"), answer("c", "r", "n")));
  equal(["a", "b", "c"].map((gen) => answers.nameOf(gen)), ["M (pane 1)", "M (pane 2)", "N"]);
});

test("an older answer has its pane's name", () => {
  const { answers } = setUp(turn("t", answer("a", "p"), answer("b", "q", "n"), answer("c", "p")));
  equal(answers.nameOf("a"), "M");
});

test("only the newest answer of a pane that was not asked since offers another", () => {
  const { conversation, answers } = setUp(turn("t", answer("a", "p"), answer("b", "q"), answer("c", "p")), turn("u", answer("d", "q")));
  const offers = () => answers.of(conversation.turns[0]).map(({ canAskAgain }) => canAskAgain);
  equal(offers(), [true, false]);
  answers.choose("a");
  equal(offers(), [false, false]);
});
