import { Session } from "/static/js/session.js";
import { emptySnapshot } from "/static/js/snapshot.js";
import { Problem } from "/static/js/api.js";
import { FakeClock, FakeSocket, fakeStorage } from "./fakes.js";
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
function setUp(storage = fakeStorage()) {
  const clock = new FakeClock();
  const world = { clock, links: [], changed: [], posted: [], sent: [], refused: [], got: [], syncs: 0, storage };
  world.document = document(snapshot("a"), snapshot("b"));
  world.answer = (url) => (url === "/stop-all" ? { generations: [] } : { state: "running" });
  const post = async (url, body) => {
    world.posted.push(url);
    world.sent.push(body);
    return world.answer(url);
  };
  world.fails = (status) => {
    world.answer = () => Promise.reject(new Problem("No.", { status }));
  };
  world.session = new Session({
    sync: world.document,
    urls: { sync: "/sync", socket: "http://here/ws/c", cancelAll: "/stop-all", cancel: "/stop/{gen}", session: "/session" },
    api: {
      get: async (url) => {
        world.got.push(url);
        if (url === "/sync") world.syncs += 1;
        if (world.document === null) throw new Problem("Gone.", { status: 404 });
        return world.document;
      },
      post,
      postForCertain: post,
    },
    storage,
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
      refused: ({ message }) => world.refused.push(message),
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

// Stops that do not get through

const key = (gen) => `key of ${gen}`;
const withKeys = () => document(snapshot("a", { stop_key: key("a") }), snapshot("b", { stop_key: key("b") }));
const kept = (world, gen) => world.session.conversation.generation(gen).stop_kept ?? false;

test("a stop carries the key of its answer, and to stop all those of all that run", async () => {
  const world = setUp();
  world.session.conversation.replace(withKeys());
  await world.session.cancel("b");
  await world.session.cancelAll();
  equal(world.sent, [{ stop_keys: [key("b")] }, { stop_keys: [key("a"), key("b")] }]);
});

test("an answer keeps its key through events and snapshot frames", async () => {
  const world = setUp();
  world.session.conversation.replace(withKeys());
  const delta = { v: 1, gen: "a", attempt: 1, seq: 2, at: 3, type: "text_delta", text: "x" };
  world.links[0].say(frame(delta));
  world.links[0].say({ type: "snapshot", cursor: "3-0", generations: [snapshot("a", { seq: 5 })] });
  await world.session.cancel("a");
  equal(world.sent, [{ stop_keys: [key("a")] }]);
});

test("a stop that did not get through is kept, said, and sent when the connection is back", async () => {
  for (const status of [0, 429, 503]) {
    const world = setUp();
    world.fails(status);
    await world.session.cancel("a").catch(() => {});
    equal([kept(world, "a"), kept(world, "b"), world.asked("a")], [true, false, false]);
    world.answer = () => ({ state: "running" });
    world.links[0].cut();
    world.clock.pass(1);
    world.links.at(-1).open();
    await settled();
    equal([world.posted, kept(world, "a"), world.asked("a")], [["/stop/a", "/stop/a"], false, true]);
  }
});

test("a stop that did not get through is sent again while the connection stands", async () => {
  const world = setUp();
  world.fails(503);
  await world.session.cancel("a").catch(() => {});
  world.answer = () => ({ state: "running" });
  world.clock.pass(2_000);
  await settled();
  equal([kept(world, "a"), world.asked("a")], [false, true]);
});

test("to stop all is kept for each that ran at that moment", async () => {
  const world = setUp();
  world.fails(0);
  await world.session.cancelAll().catch(() => {});
  equal([kept(world, "a"), kept(world, "b")], [true, true]);
  world.answer = () => ({ state: "running" });
  world.clock.pass(2_000);
  await settled();
  equal(world.posted, ["/stop-all", "/stop/a", "/stop/b"]);
});

test("a stop that is refused for good is not kept, also when it was", async () => {
  const world = setUp();
  world.fails(404);
  await world.session.cancel("a").catch(() => {});
  equal(kept(world, "a"), false);
  world.fails(0);
  await world.session.cancel("b").catch(() => {});
  world.fails(403);
  world.clock.pass(2_000);
  await settled();
  equal([kept(world, "b"), world.refused], [false, ["No."]]);
});

test("a kept stop outlives everything that is fetched again, and ends with its answer", async () => {
  const world = setUp();
  world.fails(0);
  await world.session.cancel("a").catch(() => {});
  world.links[0].say({ type: "resync" });
  await settled();
  equal(kept(world, "a"), true);
  world.links.at(-1).open();
  world.links.at(-1).say(frame(end("a", 2)));
  const before = world.posted.length;
  world.clock.pass(60_000);
  await settled();
  equal(world.posted.length - before <= 1, true);
});

test("a page whose session is gone still stops, and learns of the end by asking", async () => {
  const world = setUp();
  world.document = null;
  world.links[0].cut(4404);
  world.clock.pass(1);
  await settled();
  equal(world.session.connection.status, "gone");
  await world.session.cancel("a");
  equal(world.asked("a"), true);
  world.answer = () => ({ state: "cancelled" });
  world.clock.pass(2_000);
  await settled();
  equal(world.session.conversation.generation("a").state, "cancelled");
});

test("a page that is told to renews the session", async () => {
  const world = setUp();
  world.links[0].say({ type: "renew" });
  await settled();
  equal([world.got, world.session.connection.status], [["/session"], "live"]);
});

test("a stop whose answer the page did not live to hear is asked for by the next page", async () => {
  const world = setUp();
  world.answer = () => new Promise(() => {});
  world.session.cancel("a");
  equal(kept(world, "a"), false);
  const next = setUp(world.storage);
  await settled();
  equal([next.posted, next.asked("a")], [["/stop/a"], true]);
});
