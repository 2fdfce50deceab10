import { Faults } from "/static/js/faults.js";
import { equal, test } from "./suite.js";

const fail = () => {
  throw new Error("broken");
};

function setUp() {
  const world = { done: [], reported: [], asked: 0, told: 0 };
  world.faults = new Faults({
    report: (error) => world.reported.push(error.message),
    ask: () => (world.asked += 1),
    tell: () => (world.told += 1),
  });
  return world;
}

test("what fails keeps nothing else from being shown", () => {
  const world = setUp();
  const shown = world.faults.each(["a", "b", "c"], (gen) => (gen === "b" ? fail() : world.done.push(gen)));
  equal([shown, world.done], [["a", "c"], ["a", "c"]]);
});

test("a first fault is reported, and asks the server again", () => {
  const world = setUp();
  world.faults.each(["a"], fail);
  equal([world.reported, world.asked, world.told], [["broken"], 1, 0]);
});

test("further faults ask nothing until the server has answered", () => {
  const world = setUp();
  for (let n = 0; n < 5; n += 1) world.faults.each(["a"], fail);
  equal([world.reported.length, world.asked, world.told], [1, 1, 0]);
});

test("a fault that is there after the answer too is told, once", () => {
  const world = setUp();
  world.faults.each(["a"], fail);
  world.faults.restored();
  for (let n = 0; n < 5; n += 1) world.faults.each(["a"], fail);
  world.faults.restored();
  world.faults.each(["a"], fail);
  equal([world.reported.length, world.asked, world.told], [2, 1, 1]);
});

test("each has a fault of its own", () => {
  const world = setUp();
  world.faults.each(["a", "b"], fail);
  equal([world.reported.length, world.asked], [2, 2]);
});
