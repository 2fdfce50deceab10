/**
 * What is being written, kept across reloads of the tab: prompt, chosen panes, and the key that
 * makes sending idempotent.
 */

export class Draft {
  #storage;
  #name;
  #state;

  /**
   * @param {Storage} storage
   * @param {string} name  one for each conversation
   */
  constructor(storage, name) {
    this.#storage = storage;
    this.#name = `sidestream:draft:${name}`;
    this.#state = parse(storage.getItem(this.#name));
  }

  get prompt() {
    return this.#state.prompt ?? "";
  }

  /** The chosen panes, or null when nothing was chosen here. */
  get panes() {
    return this.#state.panes ?? null;
  }

  /** Another prompt is another request: the key of an earlier try must not answer for it. */
  edit(change) {
    const { key, ...rest } = this.#state;
    this.#save({ ...rest, ...change });
  }

  /** Give what to send. Trying again without an edit in between sends the same key. */
  seal(makeKey) {
    this.#save({ ...this.#state, key: this.#state.key ?? makeKey() });
    return this.#state.key;
  }

  clear() {
    this.#state = {};
    this.#storage.removeItem(this.#name);
  }

  #save(state) {
    this.#state = state;
    this.#storage.setItem(this.#name, JSON.stringify(state));
  }
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
