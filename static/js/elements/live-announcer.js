import { Announcements } from "../announcements.js";

// A node that is removed sooner may be missed by screen readers.
const KEEP_MS = 1000;

/** The page's only live region. Everything a screen reader is told goes through `say` or `observe`. */
export class LiveAnnouncer extends HTMLElement {
  #announcements = new Announcements();
  #timer = null;

  say(text) {
    this.#announcements.say(text);
    this.#pump();
  }

  know(snapshot) {
    this.#announcements.know(snapshot);
  }

  observe(name, snapshot) {
    this.#announcements.observe(name, snapshot);
    this.#pump();
  }

  #pump() {
    if (this.#timer !== null) return;
    const wait = this.#announcements.wait(performance.now());
    if (wait !== null) this.#timer = setTimeout(() => this.#speak(), wait);
  }

  #speak() {
    this.#timer = null;
    const next = this.#announcements.next(performance.now());
    if (next) this.#write(next);
    this.#pump();
  }

  #write({ text, urgent }) {
    const region = this.querySelector(urgent ? "[role=alert]" : "[role=status]");
    const line = document.createElement("p");
    line.textContent = text;
    region.append(line);
    setTimeout(() => line.remove(), KEEP_MS);
  }
}
