import { Catalogue } from "/static/js/catalogue.js";
import { advance } from "/static/js/code-points.js";
import { Draft } from "/static/js/draft.js";
import { uuid } from "/static/js/uuid.js";
import { fakeStorage } from "./fakes.js";
import { equal, ok, test } from "./suite.js";

const counter = () => {
  let n = 0;
  return () => `key ${(n += 1)}`;
};

test("a draft outlives the page", () => {
  const store = fakeStorage();
  new Draft(store, "c").edit({ prompt: "half a thou" });
  equal(new Draft(store, "c").prompt, "half a thou");
});

test("trying again sends the same key, also after a reload", () => {
  const [store, makeKey] = [fakeStorage(), counter()];
  const draft = new Draft(store, "c");
  draft.edit({ prompt: "x" });
  equal([draft.seal(makeKey), draft.seal(makeKey), new Draft(store, "c").seal(makeKey)], ["key 1", "key 1", "key 1"]);
});

test("an edited prompt is another request", () => {
  const [store, makeKey] = [fakeStorage(), counter()];
  const draft = new Draft(store, "c");
  draft.seal(makeKey);
  draft.edit({ prompt: "y" });
  equal(draft.seal(makeKey), "key 2");
});

test("conversations do not share a draft", () => {
  const store = fakeStorage();
  new Draft(store, "c").edit({ prompt: "x" });
  equal(new Draft(store, "d").prompt, "");
});

test("a draft that cannot be read is empty", () => {
  const store = fakeStorage();
  store.setItem("sidestream:draft:c", "{half");
  equal(new Draft(store, "c").prompt, "");
});

const MODELS = [
  { id: "a", label: "A", available: false, reason: "Set A_KEY" },
  { id: "b", label: "B", available: true },
  { id: "c", label: "C", available: true },
  { id: "d", label: "D", available: true },
];

test("a new conversation starts with the first two models that can be used", () => {
  const panes = new Catalogue(MODELS).defaultPanes(counter());
  equal(panes, [{ id: "key 1", model: "b", params: {} }, { id: "key 2", model: "c", params: {} }]);
});

test("a further pane takes a model that no pane has, then the first", () => {
  const catalogue = new Catalogue(MODELS);
  equal(catalogue.nextModel([{ model: "b" }, { model: "c" }]), "d");
  equal(catalogue.nextModel([{ model: "b" }, { model: "c" }, { model: "d" }]), "b");
});

test("a model that left the catalogue is called by its id", () => equal(new Catalogue(MODELS).label("gone"), "gone"));

test("ids are version 4 UUIDs", () => ok(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/u.test(uuid())));

test("code points are counted, not UTF-16 units", () => {
  equal([advance("a👩b", 0, 2), advance("a👩b", 3, 1), advance("ab", 0, 9), advance("👩", 0, 0)], [3, 4, 2, 0]);
});
