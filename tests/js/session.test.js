import { Session } from "/static/js/session.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { FakeClock, FakeSocket } from "./fakes.js";
import { equal, test } from "./suite.js";

const settled = () => new Promise((resolve) => setTimeout(resolve));

function snapshot(gen, fields = {}) {
  const { shownUnits, ...wire } = emptySnapshot(gen);
  return { ...wire, pane: `pane of ${gen}`, state: "running", attempt: 1, seq: 1, ...fields };
}

const document = (...generations) => ({
  v: 1,
  conversation: { id: "c", title: "T" },
  cursor: "1-0",
  panes: [],
  turns: [{ id: "t", prompt: "Why?", created_at: 1000, generations }],
});

/** A live session of two answers, with its server in the test's hands. */
function setUp() {
  const clock = new FakeClock();
  const world = { clock, links: [], changed: [], posted: [], syncs: 0 };
  world.document = document(snapshot("a"), snapshot("b"));
  world.answer = (url) => (url === "/stop-all" ? { generations: [] } : { state: "running" });
  const post = async (url) => {
    world.posted.push(url);
    return world.answer(url);
  };
  world.session = new Session({
    sync: world.document,
    urls: { sync: "/sync", socket: "http://here/ws/c", cancelAll: "/stop-all", cancel: "/stop/{gen}" },
    api: {
      get: async () => {
        world.syncs += 1;
        return world.document;
      },
      post,
      postForCertain: post,
    },
    ports: (sync) => ({
      sync,
      socket: (url) => {
        world.links.push(new FakeSocket(url));
        return world.links.at(-1);
      },
      now: clock.now,
      after: clock.after,
      random: () => 0,
      hidden: () => false,
      report: (error) => {
        throw error;
      },
    }),
    listener: {
      changed: (gens) => world.changed.push(...gens),
      turns() {},
      restored() {},
      status() {},
    },
  });
  world.session.connection.start();
  world.links[0].open();
  world.asked = (gen) => world.session.conversation.generation(gen).cancel_requested !== null;
  return world;
}

const view = (gen) => ({ v: 1, type: "cancel", gen, at: 5, by: "user" });
const frame = (...events) => ({ type: "events", cursor: "2-0", events });
const end = (gen, seq) => ({
  v: 1, gen, attempt: 1, seq, at: 9, type: "cancelled", reason: "user", upstream: "closed", latency_ms: 4, text_length: 0,
});

test("a stop shows when the server has taken it, before the log tells", async () => {
  const world = setUp();
  await world.session.cancel("a");
  equal([world.posted, world.asked("a"), world.asked("b"), world.changed], [["/stop/a"], true, false, ["a"]]);
});

test("a stop that came too late shows nothing", async () => {
  const world = setUp();
  world.answer = () => ({ state: "completed" });
  await world.session.cancel("a");
  equal([world.asked("a"), world.changed], [false, []]);
});

test("to stop all shows in those that the server took it for", async () => {
  const world = setUp();
  world.answer = () => ({ generations: [{ id: "a", state: "completed" }, { id: "b", state: "running" }] });
  await world.session.cancelAll();
  equal([world.asked("a"), world.asked("b"), world.changed], [false, true, ["b"]]);
});

test("a stop that the server has forgotten is found out", async () => {
  const world = setUp();
  await world.session.cancel("a");
  world.clock.pass(10_000);
  await settled();
  equal([world.syncs, world.asked("a")], [1, false]);
});

test("a stop that another tab asked for is looked after as well", async () => {
  const world = setUp();
  world.links[0].say(frame(view("b")));
  world.clock.pass(10_000);
  await settled();
  equal([world.syncs, world.asked("b")], [1, false]);
});

test("a stop that waits for its answer is asked about now and then", async () => {
  const world = setUp();
  world.document = document(snapshot("a", { cancel_requested: { at: 5, by: "user" } }), snapshot("b"));
  await world.session.cancel("a");
  for (let n = 0; n < 6; n += 1) {
    world.clock.pass(5_000);
    await settled();
    world.links.at(-1).open();
  }
  equal([world.syncs, world.asked("a")], [3, true]);
});

test("a stop that was answered is asked about no more", async () => {
  const world = setUp();
  await world.session.cancel("a");
  world.links[0].say(frame(view("a"), end("a", 2)));
  world.clock.pass(20_000);
  await settled();
  equal([world.syncs, world.session.conversation.generation("a").state], [0, "cancelled"]);
});
