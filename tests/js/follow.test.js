import { Follow } from "/static/js/follow.js";
import { equal, test } from "./suite.js";

const VIEWPORT = 400;
const at = (top, height) => ({ top, height, viewport: VIEWPORT });

/** A pane that follows an answer of a height. */
function parked(height) {
  const follow = new Follow();
  follow.parked(at(height - VIEWPORT, height));
  return follow;
}

test("a new pane follows", () => equal(new Follow().following, true));

test("growth alone does not stop following", () => {
  const follow = parked(1000);
  follow.scrolled(at(600, 3000));
  follow.beforeGrowth(at(600, 3000));
  equal(follow.following, true);
});

test("a reader who scrolls up is let go", () => {
  const follow = parked(1000);
  follow.scrolled(at(550, 1000));
  equal(follow.following, false);
});

test("a move that comes between two frames is seen before the view is parked again", () => {
  const follow = parked(1000);
  follow.beforeGrowth(at(580, 1000));
  equal(follow.following, false);
});

test("rounding of fractional pixels is no move", () => {
  const follow = parked(1000);
  follow.beforeGrowth(at(598.5, 1000));
  follow.scrolled(at(598.5, 1000));
  equal(follow.following, true);
});

test("coming back to the end follows again", () => {
  const follow = parked(1000);
  follow.scrolled(at(300, 1000));
  follow.scrolled(at(599, 1000));
  equal(follow.following, true);
});

test("asking for the latest follows again", () => {
  const follow = parked(1000);
  follow.release();
  follow.resume();
  equal(follow.following, true);
});

test("once let go, growth does not bring it back", () => {
  const follow = parked(1000);
  follow.release();
  follow.beforeGrowth(at(500, 1000));
  follow.parked(at(500, 1400));
  follow.scrolled(at(500, 1400));
  equal(follow.following, false);
});

test("a smaller window does not stop following", () => {
  const follow = parked(1000);
  follow.scrolled({ top: 600, height: 1000, viewport: 200 });
  equal(follow.following, true);
});
