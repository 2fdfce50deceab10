import { restored } from "../announcements.js";
import { createApi } from "../api.js";
import { browserPorts, followPageLife } from "../browser-ports.js";
import { Catalogue } from "../catalogue.js";
import { Status, Transport } from "../connection.js";
import { Faults } from "../faults.js";
import { pageTitle, stateText } from "../format.js";
import { FrameBatch } from "../frame-batch.js";
import { wasJustAsked } from "../just-asked.js";
import { csrfToken, parts, readJson, setText } from "../page.js";
import { State, isTerminal } from "../protocol.js";
import { Session } from "../session.js";
import { ShownAnswers } from "../shown-answers.js";
import { tabStorage } from "../tab-storage.js";
import { Transcript } from "../transcript.js";

// `?transport=sse` and `?transport=socket` are for tests, and for finding faults of a network.
const FORCED = { sse: Transport.events, socket: Transport.socket };

// A line that moves within this time needs no place.
const LINE_MS = 3000;

const STOP_KEPT = "The server cannot be reached. Your stop is kept, and is sent as soon as it can be.";
const CANNOT_SHOW = "An answer cannot be shown by this page as it is. Nothing is lost. Reload the page to see it.";

/** A conversation's page: gives state to the elements that show it, and their requests to the session. */
export class ConversationView extends HTMLElement {
  #parts;
  #session;
  #answers;
  #transcript;
  #faults;
  #announcer;
  #lineTimer = null;
  #batch = new FrameBatch((ids) => this.#paint(ids));
  #life = null;
  #saidLost = false;
  #finishedWhileHidden = false;

  connectedCallback() {
    this.#parts = parts(this);
    this.#announcer = document.querySelector("live-announcer");
    const catalogue = new Catalogue(readJson("models"));
    this.#session = this.#openSession();
    this.#faults = this.#lookForFaults();
    this.#answers = new ShownAnswers(this.#conversation, (model) => catalogue.label(model));
    this.#transcript = this.#makeTranscript();
    this.#life = new AbortController();
    this.#listen(this.#life.signal);
    this.#showAll();
    this.#transcript.showNewest();
    // Past turns have their true heights only when they were laid out, and then the newest has moved.
    requestAnimationFrame(() => requestAnimationFrame(() => this.#transcript.showNewest()));
    this.#announceRestored();
    this.#parts.composer.begin(catalogue, this.#conversation.panes, (draft) => this.#send(draft));
    this.#session.connection.start();
    followPageLife(this.#session.connection, this.#life.signal);
  }

  disconnectedCallback() {
    this.#life.abort();
    clearTimeout(this.#lineTimer);
    this.#session.connection.stop();
  }

  get #conversation() {
    return this.#session.conversation;
  }

  #openSession() {
    const urls = readJson("urls");
    const forced = new URLSearchParams(location.search).get("transport");
    return new Session({
      sync: readJson("sync-document"),
      urls: { ...urls, socket: new URL(urls.socket, location.href), events: new URL(urls.events, location.href) },
      api: createApi(csrfToken()),
      ports: browserPorts,
      transport: FORCED[forced],
      listener: {
        changed: (ids) => this.#changed(ids),
        turns: () => this.#turnsAdded(),
        restored: () => this.#restored(),
        status: (status, failures) => this.#statusChanged(status, failures),
        refused: (problem) => this.#parts.composer.showProblem(problem.message),
      },
    });
  }

  #lookForFaults() {
    return new Faults({
      report: (error) => reportError(error),
      ask: () => this.#session.connection.doubt(),
      tell: () => this.#parts.composer.showProblem(CANNOT_SHOW),
    });
  }

  #makeTranscript() {
    const place = this.#parts.turns;
    return new Transcript({ place, conversation: this.#conversation, answers: this.#answers, faults: this.#faults });
  }

  #listen(signal) {
    this.addEventListener("generation-cancel", ({ detail, target }) => this.#cancel(detail.gen, target), { signal });
    this.addEventListener("generation-again", ({ detail, target }) => this.#askAgain(detail, target), { signal });
    this.addEventListener("answer-show", ({ detail }) => this.#showAnswer(detail), { signal });
    this.addEventListener("stop-all", () => this.#stopAll(), { signal });
    this.addEventListener("pane-show", ({ detail }) => this.#showPane(detail.index), { signal });
    this.addEventListener("say", ({ detail }) => this.#announcer.say(detail.text), { signal });
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal });
    document.addEventListener("selectionchange", () => this.#batch.add(this.#transcript.heldPanes), { signal });
    const resized = new ResizeObserver(() => this.#batch.add(this.#newestGenerations()));
    resized.observe(this.#parts.turns);
    signal.addEventListener("abort", () => resized.disconnect());
  }

  // Requests

  async #send(draft) {
    await this.#session.send(draft);
    this.#transcript.showNewest();
  }

  async #cancel(gen, pane) {
    await this.#stop([pane], () => this.#session.cancel(gen));
    this.#batch.add([gen]);
  }

  async #stopAll() {
    const gens = this.#conversation.live.map(({ gen }) => gen);
    const panes = gens.map((gen) => this.#transcript.pane(gen)).filter((pane) => pane?.expectStop());
    await this.#stop(panes, () => this.#session.cancelAll());
    this.#batch.add(gens);
  }

  async #stop(panes, ask) {
    await ask().catch(({ status, message }) => this.#parts.composer.showProblem(status === 0 ? STOP_KEPT : message));
    panes.forEach((pane) => pane.stopAnswered());
  }

  async #askAgain({ gen, kind }, pane) {
    try {
      const added = await this.#session.again(gen, kind);
      this.#batch.flush();
      this.#transcript.pane(added)?.focusStop();
    } catch (problem) {
      pane.askingFailed();
      this.#parts.composer.showProblem(problem.message);
    }
  }

  // Showing

  #changed(ids) {
    this.#observe(ids);
    this.#batch.add(ids);
    if (!document.hidden) return;
    this.#finishedWhileHidden ||= [...ids].some((id) => isTerminal(this.#conversation.generation(id).state));
    this.#paintTitle();
  }

  #observe(ids) {
    this.#faults.each(ids, (id) => this.#announcer.observe(this.#answers.nameOf(id), this.#conversation.generation(id)));
  }

  get #all() {
    return this.#conversation.generations.map(({ gen }) => gen);
  }

  #showAll() {
    this.#introduceTurns();
    this.#paint(this.#all);
  }

  /** Everything was fetched again: show it where it stands, without moving what is being read. */
  #restored() {
    this.#faults.restored();
    this.#showAll();
    setText(this.#parts.title, this.#conversation.title);
    this.#observe(this.#all);
  }

  #turnsAdded() {
    const wasAtEnd = this.#transcript.isAtEnd;
    this.#introduceTurns();
    this.#batch.add(this.#newestGenerations());
    if (wasAtEnd) this.#transcript.showNewest();
  }

  #introduceTurns() {
    this.#transcript.introduceAll(this.#parts.switcher.current);
    this.#parts.welcome.hidden = this.#conversation.turns.length > 0;
  }

  /** Turn to another answer of a pane. The focus stays on the button that was used. */
  #showAnswer({ gen, step }) {
    const gens = this.#answers.choose(gen);
    this.#transcript.introduce(this.#conversation.turnOf(gen), this.#parts.switcher.current);
    this.#paint([gen]);
    this.#transcript.pane(gen).focusPager(step);
    const state = stateText(this.#conversation.generation(gen));
    this.#announcer.say(`Answer ${gens.indexOf(gen) + 1} of ${gens.length}: ${state}.`);
  }

  #paint(ids) {
    this.#transcript.paint(ids);
    this.#paintSummary();
  }

  /** While something waits in line, ask now and then where it stands. */
  #watchLine() {
    const waits = this.#conversation.live.some(({ state }) => state === State.queued);
    if (!waits || this.#lineTimer !== null) return;
    this.#lineTimer = setTimeout(async () => {
      if (!document.hidden) await this.#session.refreshPlaces();
      this.#lineTimer = null;
      this.#watchLine();
    }, LINE_MS);
  }

  #paintSummary() {
    this.#watchLine();
    const { live } = this.#conversation;
    this.#parts.composer.showLive(live.length);
    if (!live.some(({ stop_kept: isKept }) => isKept)) this.#parts.composer.withdraw(STOP_KEPT);
    this.#parts.switcher.show(this.#newestPanes());
    this.#paintTitle();
  }

  #newestPanes() {
    const turn = this.#conversation.turns.at(-1);
    if (!turn) return [];
    return this.#answers.of(turn).map(({ gen, label }) => {
      const snapshot = this.#conversation.generation(gen);
      return { label, state: snapshot.state, stateText: stateText(snapshot) };
    });
  }

  #paintTitle() {
    document.title = pageTitle({
      title: this.#parts.title.textContent.trim(),
      hidden: document.hidden,
      live: this.#conversation.live.length,
      finishedWhileHidden: this.#finishedWhileHidden,
    });
  }

  #showPane(index) {
    this.#transcript.showPane(index);
    this.#batch.add(this.#newestGenerations());
  }

  #newestGenerations() {
    return this.#conversation.turns.at(-1)?.generations ?? [];
  }

  // Life of the page

  #visibilityChanged() {
    if (!document.hidden) {
      this.#finishedWhileHidden = false;
      this.#batch.flush();
    }
    this.#paintTitle();
  }

  #statusChanged(status, failures) {
    this.#parts.status.show(status, failures);
    this.dataset.connection = status;
    this.dataset.transport = this.#session.connection.transport;
    const isOffline = this.#parts.status.dataset.status === "offline";
    if (isOffline && !this.#saidLost) this.#announcer.say("Connection lost. Reconnecting.");
    if (status === Status.live && this.#saidLost) this.#announcer.say("Connected again.");
    this.#saidLost = isOffline || (this.#saidLost && status !== Status.live);
  }

  #announceRestored() {
    const { generations, id } = this.#conversation;
    if (wasJustAsked(tabStorage(), id)) {
      this.#observe(this.#all);
      return;
    }
    generations.forEach((snapshot) => this.#announcer.know(snapshot));
    const text = restored(generations);
    if (text) this.#announcer.say(text);
  }
}
