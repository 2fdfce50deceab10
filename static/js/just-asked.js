/** Tells the page that opens after asking that its answers are new, and no restored ones. */

const NAME = "sidestream:asked";

/** @param {import("./tab-storage.js").tabStorage} storage */
export const noteAsked = (storage, conversation) => storage.setItem(NAME, conversation);

/** Say whether this conversation was asked for just now. Only the first page that opens is told. */
export function wasJustAsked(storage, conversation) {
  const asked = storage.getItem(NAME);
  storage.removeItem(NAME);
  return asked === conversation;
}
