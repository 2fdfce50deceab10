/**
 * Collects what has changed and paints all of it in one animation frame.
 *
 * Hidden pages get no frames: there the set only grows (by names, not by text), and one flush
 * paints the settled state when the page is seen again.
 */

export class FrameBatch {
  #dirty = new Set();
  #paint;
  #frame = null;
  #request;
  #cancel;

  /**
   * @param {(names: Set<string>) => void} paint
   * @param {{request?: typeof requestAnimationFrame, cancel?: typeof cancelAnimationFrame}} [frames]
   */
  constructor(paint, { request, cancel } = {}) {
    this.#paint = paint;
    this.#request = request ?? ((run) => requestAnimationFrame(run));
    this.#cancel = cancel ?? ((frame) => cancelAnimationFrame(frame));
  }

  add(names) {
    for (const name of names) this.#dirty.add(name);
    if (this.#dirty.size > 0) this.#frame ??= this.#request(() => this.flush());
  }

  flush() {
    if (this.#frame !== null) this.#cancel(this.#frame);
    this.#frame = null;
    const names = this.#dirty;
    if (names.size === 0) return;
    this.#dirty = new Set();
    this.#paint(names);
  }
}
