/** Run something later. Gives a function that takes it back. */
export const after = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

/** Timers with names: one that is set again begins anew. */
export class Timers {
  #after;
  #cancels = new Map();

  /** @param {typeof after} later */
  constructor(later) {
    this.#after = later;
  }

  has(name) {
    return this.#cancels.has(name);
  }

  set(name, ms, run) {
    this.clear(name);
    const due = () => {
      this.#cancels.delete(name);
      run();
    };
    this.#cancels.set(name, this.#after(ms, due));
  }

  clear(name) {
    this.#cancels.get(name)?.();
    this.#cancels.delete(name);
  }

  clearAll() {
    for (const name of [...this.#cancels.keys()]) this.clear(name);
  }
}
