import { backoffMs } from "/static/js/backoff.js";
import { Status, Transport } from "/static/js/connection.js";
import { FakeEvents, FakeSocket } from "./fakes.js";
import { equal, ok, test } from "./suite.js";
import { events, link, live, setUp, settled } from "./world.js";

test("it begins with a socket at the cursor", () => {
  const world = setUp();
  world.connection.start();
  ok(link(world) instanceof FakeSocket);
  equal([link(world).cursor, world.status], ["1-0", Status.connecting]);
});

test("an open socket is live", () => equal(live().status, Status.live));

test("a frame is handed on, and its cursor acknowledged", () => {
  const world = live();
  link(world).say(events("2-0"));
  world.clock.pass(250);
  equal(link(world).sent, [{ type: "ack", cursor: "2-0" }]);
});

test("frames close together are acknowledged once, by the last cursor", () => {
  const world = live();
  ["2-0", "3-0", "4-0"].forEach((cursor) => link(world).say(events(cursor)));
  world.clock.pass(250);
  equal(link(world).sent, [{ type: "ack", cursor: "4-0" }]);
});

test("a large frame is acknowledged without waiting for a timer", () => {
  const world = live();
  link(world).say({ ...events("2-0"), events: ["x".repeat(70_000)] });
  equal(link(world).sent.length, 1);
});

test("a ping is not handed on", () => {
  const world = live();
  link(world).say({ type: "ping" });
  equal(world.frames, []);
});

test("a lost socket comes back at the newest cursor", () => {
  const world = live();
  link(world).say(events("5-0"));
  link(world).cut();
  equal(world.status, Status.waiting);
  world.clock.pass(500);
  equal([link(world).cursor, world.syncs], ["5-0", 0]);
});

test("what an old link still says is dropped", () => {
  const world = live();
  const old = link(world);
  old.cut();
  world.clock.pass(500);
  old.say(events("7-0"));
  equal(world.frames, []);
});

test("a socket that cannot be opened gives way to events", () => {
  const world = setUp();
  world.connection.start();
  link(world).cut();
  world.clock.pass(500);
  ok(link(world) instanceof FakeEvents);
});

test("events that work are kept when a socket never did", () => {
  const world = setUp();
  world.connection.start();
  link(world).cut();
  world.clock.pass(500);
  link(world).open();
  link(world).say(events("2-0"));
  link(world).cut();
  world.clock.pass(500);
  ok(link(world) instanceof FakeEvents);
  equal(link(world).cursor, "2-0");
});

test("a socket that worked before is tried again after events", () => {
  const world = live();
  link(world).cut();
  world.clock.pass(500);
  link(world).cut();
  world.clock.pass(1000);
  link(world).open();
  link(world).say(events("2-0"));
  link(world).cut();
  world.clock.pass(500);
  ok(link(world) instanceof FakeSocket);
});

test("a forced transport stays", () => {
  const world = setUp({ transport: Transport.events });
  world.connection.start();
  link(world).cut();
  world.clock.pass(500);
  ok(world.links.every((one) => one instanceof FakeEvents));
});

test("a socket that hangs while connecting is given up", () => {
  const world = setUp();
  world.connection.start();
  world.clock.pass(8000);
  equal([link(world).closed, world.status], [true, Status.waiting]);
});

test("forty silent seconds end a connection", () => {
  const world = live();
  world.clock.pass(39_000);
  equal(world.status, Status.live);
  world.clock.pass(1_000);
  equal(world.status, Status.waiting);
});

test("a ping keeps a silent connection", () => {
  const world = live();
  world.clock.pass(30_000);
  link(world).say({ type: "ping" });
  world.clock.pass(30_000);
  equal(world.status, Status.live);
});

test("a hidden page does not judge silence", () => {
  const world = live();
  world.hidden = true;
  world.clock.pass(200_000);
  equal(world.status, Status.live);
});

test("waking after silence syncs, then goes on from its cursor", async () => {
  const world = live();
  world.hidden = true;
  world.clock.pass(60_000);
  world.hidden = false;
  world.connection.wake();
  equal(world.status, Status.syncing);
  await settled();
  equal([link(world).cursor, world.documents.length], ["9-0", 1]);
});

test("waking with a fresh connection changes nothing", () => {
  const world = live();
  world.clock.pass(3000);
  world.connection.wake();
  equal([world.status, world.links.length], [Status.live, 1]);
});

test("waking twice asks once", () => {
  const world = live();
  world.clock.pass(20_000);
  world.connection.wake();
  world.connection.wake();
  equal(world.syncs, 1);
});

test("a gap syncs, then goes on from its cursor", async () => {
  const world = live();
  world.gap = true;
  link(world).say(events("5-0"));
  await settled();
  equal([world.syncs, link(world).cursor], [1, "9-0"]);
});

test("a resync frame does the same", async () => {
  const world = live();
  link(world).say({ type: "resync" });
  await settled();
  equal([world.syncs, link(world).cursor], [1, "9-0"]);
});

test("a frame that is no JSON counts as missed", async () => {
  const world = live();
  link(world).say('{"type":"eve');
  await settled();
  equal(world.syncs, 1);
});

test("a gap that stays after sync is asked for at a slower and slower rate", async () => {
  const world = live();
  world.gap = true;
  link(world).say(events("5-0"));
  await settled();
  link(world).open();
  link(world).say(events("5-0"));
  equal([world.syncs, world.status], [1, Status.waiting]);
  world.clock.pass(500);
  equal(world.syncs, 2);
});

test("a cut during sync is tried again", async () => {
  const world = live();
  world.answer = () => Promise.reject(new Error("offline"));
  link(world).say({ type: "resync" });
  await settled();
  equal(world.status, Status.waiting);
});

test("a conversation that is gone is not asked for again", async () => {
  const world = live();
  world.answer = () => Promise.reject(Object.assign(new Error("gone"), { gone: true }));
  link(world).say({ type: "resync" });
  await settled();
  world.clock.pass(100_000);
  equal([world.status, world.syncs], [Status.gone, 1]);
});

test("a conversation that is gone is looked for again when somebody looks: they may have signed in", async () => {
  const world = live();
  world.answer = () => Promise.reject(Object.assign(new Error("gone"), { gone: true }));
  link(world).say({ type: "resync" });
  await settled();
  world.answer = () => Promise.resolve({ cursor: "9-0" });
  world.connection.wake();
  await settled();
  link(world).open();
  equal([world.status, world.syncs], [Status.live, 2]);
});

test("after several failures it asks what has become of the conversation", async () => {
  const world = live();
  for (let n = 0; n < 3; n += 1) {
    link(world).cut();
    world.clock.pass(20_000);
  }
  await settled();
  ok(world.syncs > 0);
});

test("each failure may wait longer, up to a cap", () => {
  equal([0, 1, 2, 3].map((n) => backoffMs(n, 1)), [500, 1000, 2000, 4000]);
  equal(backoffMs(50, 1), 15_000);
});

test("waiting has full jitter", () => equal(backoffMs(3, 0), 0));

test("a connection that was good begins counting failures anew", () => {
  const world = live();
  link(world).cut();
  equal(world.failures, 1);
  world.clock.pass(500);
  link(world).open();
  world.clock.pass(6000);
  link(world).cut();
  equal(world.failures, 1);
});

test("a server that accepts and hangs up is not asked in a tight loop", () => {
  const world = live();
  link(world).cut();
  world.clock.pass(500);
  link(world).open();
  link(world).cut();
  equal(world.failures, 2);
});

test("a page that goes away closes its link and lets no timer run", () => {
  const world = live();
  world.connection.stop();
  world.clock.pass(100_000);
  equal([link(world).closed, world.status, world.links.length], [true, Status.idle, 1]);
});

test("a page that comes back from the cache syncs", async () => {
  const world = live();
  world.connection.stop();
  world.connection.resync();
  await settled();
  equal([world.syncs, link(world).cursor], [1, "9-0"]);
});

test("a sync that was overtaken by leaving is dropped", async () => {
  const world = live();
  world.connection.resync();
  world.connection.stop();
  await settled();
  equal([world.documents.length, world.status], [0, Status.idle]);
});
