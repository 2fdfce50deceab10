import { sends } from "/static/js/keyboard.js";
import { equal, test } from "./suite.js";

const enter = (more = {}) => new KeyboardEvent("keydown", { key: "Enter", ...more });
const both = (event) => [sends(event, false), sends(event, true)];

test("Enter sends where there is a keyboard, and begins a line on the screen's", () => {
  equal(both(enter()), [true, false]);
});

test("Shift or Alt and Enter begin a line everywhere", () => {
  equal([both(enter({ shiftKey: true })), both(enter({ altKey: true }))], [[false, false], [false, false]]);
});

test("Control or Command and Enter send everywhere", () => {
  equal([both(enter({ ctrlKey: true })), both(enter({ metaKey: true }))], [[true, true], [true, true]]);
});

test("the Enter of an input method never sends", () => {
  const composing = [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, ctrlKey: true }];
  equal(composing.map((more) => both(enter(more))), Array(3).fill([false, false]));
});

test("no other key sends", () => {
  const keys = ["a", " ", "Tab", "Escape", "Process", "Unidentified"];
  equal(keys.map((key) => sends(new KeyboardEvent("keydown", { key, ctrlKey: true }), false)), keys.map(() => false));
});
