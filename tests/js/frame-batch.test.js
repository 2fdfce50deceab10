import { FrameBatch } from "/static/js/frame-batch.js";
import { equal, test } from "./suite.js";

/** A batch whose frames the test gives. */
function setUp() {
  const world = { painted: [], requested: [], cancelled: [] };
  world.batch = new FrameBatch((names) => world.painted.push([...names]), {
    request: (run) => world.requested.push(run),
    cancel: (frame) => world.cancelled.push(frame),
  });
  return world;
}

test("many changes are painted in one frame", () => {
  const world = setUp();
  world.batch.add(["a"]);
  world.batch.add(["b", "a"]);
  world.requested[0]();
  equal([world.requested.length, world.painted], [1, [["a", "b"]]]);
});

test("changes after a frame ask for the next one", () => {
  const world = setUp();
  world.batch.add(["a"]);
  world.requested[0]();
  world.batch.add(["a"]);
  equal(world.requested.length, 2);
});

test("a page that is seen again paints at once, and the frame that waits is taken back", () => {
  const world = setUp();
  world.batch.add(["a"]);
  world.batch.flush();
  equal([world.painted, world.cancelled], [[["a"]], [1]]);
});

test("nothing new asks for no frame and paints nothing", () => {
  const world = setUp();
  world.batch.add([]);
  world.batch.flush();
  equal([world.requested.length, world.painted], [0, []]);
});
