/** A connection with everything around it in the test's hands. */

import { Connection, Status } from "/static/js/connection.js";
import { FakeClock, FakeEvents, FakeSocket } from "./fakes.js";

export const settled = () => new Promise((resolve) => setTimeout(resolve));

export function setUp(options = {}) {
  const clock = new FakeClock();
  const world = { clock, links: [], frames: [], syncs: 0, documents: [], reported: [], cursor: "1-0" };
  Object.assign(world, { hidden: false, gap: false, awaits: false, chance: 1 });
  world.answer = () => Promise.resolve({ cursor: "9-0" });
  world.fold = () => {};
  const opening = (Link) => (url) => {
    world.links.push(new Link(url));
    return world.links.at(-1);
  };
  world.connection = new Connection({
    urls: { socket: "http://here/ws/c", events: "http://here/api/c/events" },
    ports: {
      socket: opening(FakeSocket),
      events: opening(FakeEvents),
      sync: () => {
        world.syncs += 1;
        return world.answer();
      },
      now: clock.now,
      after: clock.after,
      random: () => world.chance,
      hidden: () => world.hidden,
      report: (error) => world.reported.push(error.message),
    },
    handlers: {
      cursor: () => world.cursor,
      awaits: () => world.awaits,
      frame: (frame) => {
        world.fold(frame);
        world.frames.push(frame);
        if (!world.gap) world.cursor = frame.cursor;
        return { gap: world.gap };
      },
      sync: (document) => {
        world.fold(document);
        world.documents.push(document);
        world.cursor = document.cursor;
      },
      status: (status, failures) => Object.assign(world, { status, failures }),
    },
    ...options,
  });
  return world;
}

export function live(options) {
  const world = setUp(options);
  world.connection.start();
  world.links[0].open();
  return world;
}

export const link = (world) => world.links.at(-1);
export const events = (cursor) => ({ type: "events", cursor, events: [] });

/** Cut the link, wait for the next one, and open it. */
export function cutAndReopen(world, code) {
  link(world).cut(code);
  while (world.status === Status.waiting) world.clock.pass(100);
  link(world).open();
}
