import { Status } from "/static/js/connection.js";
import { equal, test } from "./suite.js";
import { cutAndReopen, events, link, live, setUp, settled } from "./world.js";

const PING = { type: "ping" };
const never = () => new Promise(() => {});

/** Let so many pings come, each after 15 silent seconds, over whatever link is there then. */
async function hearPings(world, count) {
  for (let n = 0; n < count; n += 1) {
    world.clock.pass(15_000);
    link(world).say(PING);
    await settled();
  }
}

function waiting(options = {}) {
  return Object.assign(live(), { awaits: true, chance: 0, ...options });
}

// A sync that is not answered

test("waking asks again when a sync was not answered for long", () => {
  const world = live();
  world.answer = never;
  world.connection.resync();
  world.clock.pass(10_000);
  world.connection.wake();
  equal(world.syncs, 2);
});

test("what an overtaken sync answers after all is dropped", async () => {
  const world = live();
  let reply;
  world.answer = () => new Promise((resolve) => (reply = resolve));
  world.connection.resync();
  const late = reply;
  world.clock.pass(10_000);
  world.connection.wake();
  late({ cursor: "5-0" });
  await settled();
  equal([world.documents, world.status], [[], Status.syncing]);
});

test("a document that cannot be shown is reported, and asked for again later", async () => {
  const world = live();
  world.fold = () => {
    throw new Error("broken");
  };
  world.connection.resync();
  await settled();
  equal([world.status, world.reported, world.syncs], [Status.waiting, ["broken"], 1]);
  world.fold = () => {};
  world.clock.pass(500);
  await settled();
  equal([world.syncs, link(world).cursor], [2, "9-0"]);
});

test("a frame that cannot be folded is reported, and counts as missed", async () => {
  const world = live();
  world.fold = ({ type }) => {
    if (type) throw new Error("broken");
  };
  link(world).say(events("2-0"));
  await settled();
  equal([world.reported, world.syncs, link(world).cursor], [["broken"], 1, "9-0"]);
});

// Silence while an answer is awaited

test("two pings with nothing between them ask what has become of an answer", async () => {
  const world = waiting();
  await hearPings(world, 1);
  equal(world.syncs, 0);
  await hearPings(world, 1);
  world.clock.pass(0);
  await settled();
  equal([world.syncs, link(world).cursor], [1, "9-0"]);
});

test("pings of a conversation in which nothing is awaited ask for nothing", async () => {
  const world = waiting({ awaits: false });
  await hearPings(world, 10);
  equal(world.syncs, 0);
});

test("a frame between two pings is a sign of life", async () => {
  const world = waiting();
  for (let n = 2; n < 12; n += 1) {
    await hearPings(world, 1);
    link(world).say(events(`${n}-0`));
  }
  world.clock.pass(10_000);
  equal(world.syncs, 0);
});

test("pages that hear a ping together do not ask together", async () => {
  const world = waiting({ chance: 0.5 });
  await hearPings(world, 2);
  world.clock.pass(2_000);
  equal(world.syncs, 0);
  world.clock.pass(1_000);
  equal(world.syncs, 1);
});

test("a frame that comes before the question was asked takes it back", async () => {
  const world = waiting({ chance: 0.5 });
  await hearPings(world, 2);
  link(world).say(events("2-0"));
  world.clock.pass(10_000);
  equal(world.syncs, 0);
});

test("a model that says nothing for ten minutes costs one sync in thirty seconds", async () => {
  const world = waiting();
  for (let n = 0; n < 40; n += 1) {
    await hearPings(world, 1);
    world.clock.pass(0);
    await settled();
    link(world).open();
  }
  equal([world.syncs, world.status], [20, Status.live]);
});

test("connections that are cut before their second ping do not hide the silence", async () => {
  const world = waiting();
  for (let n = 0; n < 3; n += 1) {
    world.clock.pass(10_000);
    link(world).cut();
    world.clock.pass(0);
    await settled();
    link(world).open();
  }
  equal(world.syncs, 1);
});

// Doubt

test("a doubt asks for everything again, soon and once", async () => {
  const world = live();
  world.connection.doubt();
  world.connection.doubt();
  equal([world.status, world.syncs], [Status.live, 0]);
  world.clock.pass(500);
  await settled();
  equal([world.syncs, link(world).cursor], [1, "9-0"]);
  link(world).open();
  world.clock.pass(5_000);
  equal(world.syncs, 1);
});

test("a doubt is settled before anything else when the connection is lost meanwhile", () => {
  const world = live();
  world.connection.doubt();
  link(world).cut();
  world.clock.pass(500);
  equal([world.syncs, world.status], [1, Status.syncing]);
});

test("a doubt about the document that is being shown asks once more", async () => {
  const world = live();
  world.fold = () => {
    world.fold = () => {};
    world.connection.doubt();
  };
  world.connection.resync();
  await settled();
  equal([world.syncs, world.documents.length, link(world).cursor], [2, 2, "9-0"]);
});

test("a doubt about the document that came with the page asks before it follows", () => {
  const world = setUp();
  world.connection.doubt();
  world.connection.start();
  equal([world.syncs, world.status], [1, Status.syncing]);
});

test("a page that went away settles no doubt", () => {
  const world = live();
  world.connection.stop();
  world.connection.doubt();
  world.clock.pass(100_000);
  equal([world.syncs, world.status], [0, Status.idle]);
});

// How long it waits

test("connections that live for some seconds are followed by short waits", () => {
  const world = live();
  const waits = [];
  for (let n = 0; n < 6; n += 1) {
    world.clock.pass(3_000);
    link(world).cut();
    waits.push(world.failures);
    world.clock.pass(500);
    link(world).open();
  }
  equal([waits, world.status, world.syncs], [[1, 1, 1, 1, 1, 1], Status.live, 0]);
});

test("a server that refuses is asked at a slower and slower rate, however slowly it does", () => {
  for (const code of [4429, 4500, 4503]) {
    const world = live();
    world.clock.pass(3_000);
    cutAndReopen(world, code);
    world.clock.pass(3_000);
    link(world).cut(code);
    equal([code, world.failures], [code, 2]);
  }
});

test("a server that leaves is no failure, however soon", () => {
  const world = live();
  cutAndReopen(world, 4502);
  link(world).cut(4502);
  equal(world.failures, 1);
});

test("a close that means the cursor or the conversation asks what has become of it", () => {
  for (const code of [4400, 4404]) {
    const world = live();
    link(world).cut(code);
    world.clock.pass(500);
    equal([code, world.syncs, world.status], [code, 1, Status.syncing]);
  }
});
