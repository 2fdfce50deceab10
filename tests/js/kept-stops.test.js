import { Problem } from "/static/js/api.js";
import { KeptStops } from "/static/js/kept-stops.js";
import { FakeClock, fakeStorage } from "./fakes.js";
import { equal, test } from "./suite.js";

const settled = () => new Promise((resolve) => setTimeout(resolve));

/** A page that keeps stops, with its server in the test's hands. */
function setUp(storage = fakeStorage()) {
  const clock = new FakeClock();
  const world = { clock, storage, asked: [], sent: 0, answers: false };
  world.stops = new KeptStops({
    storage,
    conversation: "c",
    ask: async (gen) => {
      world.asked.push(gen);
      return world.answers;
    },
    sent: () => (world.sent += 1),
    after: clock.after,
    random: () => 1,
  });
  return world;
}

test("what did not get through is sent again until it is answered, ever more seldom", async () => {
  const world = setUp();
  world.stops.keep(["a"]);
  world.stops.sendLater();
  const at = [];
  for (let ms = 0; ms < 60_000; ms += 500) {
    const before = world.asked.length;
    world.clock.pass(500);
    await settled();
    if (world.asked.length > before) at.push(world.clock.now());
  }
  equal(at, [1500, 3500, 6500, 11_500, 20_500, 36_500, 52_500]);
  world.answers = true;
  world.clock.pass(16_000);
  await settled();
  world.clock.pass(600_000);
  await settled();
  equal([world.asked.length, world.stops.has("a")], [8, false]);
});

test("a connection that is back is a reason to send at once", async () => {
  const world = setUp();
  world.stops.keep(["a", "b"]);
  world.answers = true;
  await world.stops.send();
  equal([world.asked, world.stops.has("a"), world.stops.has("b"), world.sent], [["a", "b"], false, false, 1]);
  equal(setUp(world.storage).stops.has("b"), false);
});

test("what is under way is not sent beside itself", async () => {
  const world = setUp();
  world.stops.keep(["a"]);
  await Promise.all([world.stops.send(), world.stops.send()]);
  equal(world.asked, ["a"]);
});

test("a wish outlives the page, until it is answered", async () => {
  const first = setUp();
  first.stops.keep(["a"]);
  const second = setUp(first.storage);
  equal(second.stops.has("a"), true);
  second.answers = true;
  await second.stops.send();
  equal(setUp(first.storage).stops.has("a"), false);
});

test("what has ended is asked for no more", async () => {
  const world = setUp();
  world.stops.keep(["a", "b"]);
  world.stops.retain((gen) => gen === "b");
  await world.stops.send();
  equal(world.asked, ["b"]);
});

test("what another program left in the storage is passed over", () => {
  for (const left of ["{", "null", '{"a":1}', "7"]) {
    const storage = fakeStorage();
    storage.setItem("sidestream:stops:c", left);
    equal(setUp(storage).stops.has("a"), false);
  }
});

test("a request passes that nobody could take just now, and no other", () => {
  const passes = (status) => new Problem("", { status }).passes;
  equal([0, 429, 500, 502, 503, 504].map(passes), Array(6).fill(true));
  equal([400, 403, 404, 409, 413, 422].map(passes), Array(6).fill(false));
});
