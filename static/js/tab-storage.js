/**
 * What a tab keeps across its reloads, as far as the browser lets it: with cookies refused even naming
 * `sessionStorage` throws, and a full one refuses what is new. Then it is kept for as long as the page lives.
 */

/**
 * @param {() => Storage} [open]
 * @returns {Pick<Storage, "getItem"|"setItem"|"removeItem">}
 */
export function tabStorage(open = () => sessionStorage) {
  const unkept = new Map();
  return {
    getItem: (name) => unkept.get(name) ?? attempt(() => open().getItem(name), null),
    setItem(name, value) {
      const isKept = attempt(() => {
        open().setItem(name, value);
        return true;
      }, false);
      if (isKept) unkept.delete(name);
      else unkept.set(name, value);
    },
    removeItem(name) {
      unkept.delete(name);
      attempt(() => open().removeItem(name), undefined);
    },
  };
}

function attempt(run, otherwise) {
  try {
    return run();
  } catch {
    return otherwise;
  }
}
