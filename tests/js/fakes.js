/** Fakes of the connection's ports: time that a test moves, and links that a test opens, feeds and cuts. */

export class FakeClock {
  #now = 0;
  #timers = new Set();

  now = () => this.#now;

  after = (ms, run) => {
    const timer = { at: this.#now + ms, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  /** Let time pass, running what falls due in order. */
  pass(ms) {
    const end = this.#now + ms;
    for (let next = this.#due(end); next; next = this.#due(end)) {
      this.#timers.delete(next);
      this.#now = next.at;
      next.run();
    }
    this.#now = end;
  }

  #due(end) {
    return [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
  }
}

class FakeLink {
  closed = false;

  constructor(url) {
    this.url = new URL(url);
  }

  get cursor() {
    return this.url.searchParams.get("cursor");
  }

  open() {
    this.onopen();
  }

  say(frame) {
    this.onmessage({ data: typeof frame === "string" ? frame : JSON.stringify(frame) });
  }

  close() {
    this.closed = true;
  }
}

export class FakeSocket extends FakeLink {
  sent = [];

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  /** 1006 is what a browser says when nobody said good-bye. */
  cut(code = 1006) {
    this.onclose({ code });
  }
}

export class FakeEvents extends FakeLink {
  cut() {
    this.onerror();
  }
}

/** @param {Record<string, string>} [items]  what it holds already */
export function fakeStorage(items = {}) {
  const kept = new Map(Object.entries(items));
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
    removeItem: (name) => kept.delete(name),
  };
}
