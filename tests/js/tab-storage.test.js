import { Draft } from "/static/js/draft.js";
import { noteAsked, wasJustAsked } from "/static/js/just-asked.js";
import { tabStorage } from "/static/js/tab-storage.js";
import { fakeStorage } from "./fakes.js";
import { equal, test } from "./suite.js";

const denied = () => {
  throw new DOMException("The operation is insecure.", "SecurityError");
};

/** A storage that takes nothing new. */
const full = () => {
  const kept = fakeStorage({ kept: "old" });
  kept.setItem = () => {
    throw new DOMException("", "QuotaExceededError");
  };
  return () => kept;
};

test("what a tab keeps is there for its next page", () => {
  const store = fakeStorage();
  tabStorage(() => store).setItem("a", "1");
  equal(tabStorage(() => store).getItem("a"), "1");
});

test("a storage that is denied keeps things for as long as the page lives", () => {
  const storage = tabStorage(denied);
  equal(storage.getItem("a"), null);
  storage.setItem("a", "1");
  equal(storage.getItem("a"), "1");
  storage.removeItem("a");
  equal(storage.getItem("a"), null);
});

test("a full storage keeps what is newer in the page", () => {
  const storage = tabStorage(full());
  equal(storage.getItem("kept"), "old");
  storage.setItem("kept", "new");
  equal(storage.getItem("kept"), "new");
});

test("a draft can be written and sent without any storage", () => {
  for (const open of [denied, full()]) {
    const draft = new Draft(tabStorage(open), "c");
    draft.edit({ prompt: "half a thou" });
    equal([draft.prompt, draft.seal(() => "key"), draft.seal(() => "other")], ["half a thou", "key", "key"]);
    draft.clear();
    equal(draft.prompt, "");
  }
});

test("only the page that opens after asking is told that it is new", () => {
  const store = fakeStorage();
  noteAsked(store, "c");
  equal([wasJustAsked(store, "c"), wasJustAsked(store, "c")], [true, false]);
});

test("a page of another conversation is not new, and takes the note away", () => {
  const store = fakeStorage();
  noteAsked(store, "c");
  equal([wasJustAsked(store, "d"), wasJustAsked(store, "c")], [false, false]);
});
