import { continuedBy, panesOf } from "../again.js";
import { restored } from "../announcements.js";
import { createApi } from "../api.js";
import { browserPorts, followPageLife } from "../browser-ports.js";
import { Catalogue } from "../catalogue.js";
import { Status, Transport } from "../connection.js";
import { pageTitle, stateText } from "../format.js";
import { FrameBatch } from "../frame-batch.js";
import { csrfToken, parts, readJson, setText } from "../page.js";
import { State, isTerminal } from "../protocol.js";
import { Session } from "../session.js";

// `?transport=sse` and `?transport=socket` are for tests, and for finding faults of a network.
const FORCED = { sse: Transport.events, socket: Transport.socket };

// A line that moves within this time needs no place.
const LINE_MS = 3000;

/** A conversation's page: gives state to the elements that show it, and their requests to the session. */
export class ConversationView extends HTMLElement {
  #parts;
  #session;
  #catalogue;
  #announcer;
  #turns = new Map();
  /** Where an older answer was asked for: which, and how many there were then. A new one is shown again. */
  #chosen = new Map();
  #lineTimer = null;
  #batch = new FrameBatch((ids) => this.#paint(ids));
  #life = null;
  #saidLost = false;
  #finishedWhileHidden = false;

  connectedCallback() {
    this.#parts = parts(this);
    this.#announcer = document.querySelector("live-announcer");
    this.#catalogue = new Catalogue(readJson("models"));
    this.#session = this.#openSession();
    this.#life = new AbortController();
    this.#listen(this.#life.signal);
    this.#showAll();
    this.#showNewest();
    // Past turns have their true heights only when they were laid out, and then the newest has moved.
    requestAnimationFrame(() => requestAnimationFrame(() => this.#showNewest()));
    this.#announceRestored();
    this.#parts.composer.begin(this.#catalogue, this.#conversation.panes, (draft) => this.#send(draft));
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
      },
    });
  }

  #listen(signal) {
    this.addEventListener("generation-cancel", ({ detail, target }) => this.#cancel(detail.gen, target), { signal });
    this.addEventListener("generation-again", ({ detail, target }) => this.#askAgain(detail, target), { signal });
    this.addEventListener("answer-show", ({ detail }) => this.#showAnswer(detail), { signal });
    this.addEventListener("stop-all", () => this.#stopAll(), { signal });
    this.addEventListener("pane-show", ({ detail }) => this.#showPane(detail.index), { signal });
    this.addEventListener("say", ({ detail }) => this.#announcer.say(detail.text), { signal });
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal });
    document.addEventListener("selectionchange", () => this.#releaseHeld(), { signal });
    const resized = new ResizeObserver(() => this.#batch.add(this.#newestGenerations()));
    resized.observe(this.#parts.turns);
    signal.addEventListener("abort", () => resized.disconnect());
  }

  // Requests

  async #send(draft) {
    await this.#session.send(draft);
    this.#showNewest();
  }

  async #cancel(gen, pane) {
    try {
      await this.#session.cancel(gen);
    } catch (problem) {
      pane.cancelFailed();
      this.#parts.composer.showProblem(problem.message);
    }
  }

  async #stopAll() {
    const panes = this.#conversation.live.map(({ gen }) => this.#pane(gen)).filter((pane) => pane?.expectStop());
    try {
      await this.#session.cancelAll();
    } catch (problem) {
      panes.forEach((pane) => pane.cancelFailed());
      this.#parts.composer.showProblem(problem.message);
    }
  }

  async #askAgain({ gen, kind }, pane) {
    try {
      const added = await this.#session.again(gen, kind);
      this.#batch.flush();
      this.#pane(added)?.focusStop();
    } catch (problem) {
      pane.askingFailed();
      this.#parts.composer.showProblem(problem.message);
    }
  }

  // Showing

  #changed(ids) {
    const snapshots = [...ids].map((id) => this.#conversation.generation(id));
    snapshots.forEach((snapshot) => this.#observe(snapshot));
    this.#batch.add(ids);
    if (!document.hidden) return;
    this.#finishedWhileHidden ||= snapshots.some(({ state }) => isTerminal(state));
    this.#paintTitle();
  }

  #observe(snapshot) {
    const turn = this.#conversation.turnOf(snapshot.gen);
    const { name } = this.#answers(turn).find(({ gens }) => gens.includes(snapshot.gen));
    this.#announcer.observe(name, snapshot);
  }

  #showAll() {
    this.#introduceTurns();
    this.#paint(new Set(this.#conversation.generations.map(({ gen }) => gen)));
  }

  /** Everything was fetched again: show it where it stands, without moving what is being read. */
  #restored() {
    this.#showAll();
    setText(this.#parts.title, this.#conversation.title);
    this.#conversation.generations.forEach((snapshot) => this.#observe(snapshot));
  }

  #turnsAdded() {
    const { turns } = this.#parts;
    const wasAtEnd = turns.scrollHeight - turns.scrollTop - turns.clientHeight < turns.clientHeight / 2;
    this.#introduceTurns();
    this.#batch.add(this.#newestGenerations());
    if (wasAtEnd) this.#showNewest();
  }

  #introduceTurns() {
    const { turns } = this.#conversation;
    turns.forEach((turn) => this.#introduceTurn(turn));
    this.#parts.welcome.hidden = turns.length > 0;
  }

  #introduceTurn(turn) {
    const index = this.#conversation.turns.indexOf(turn);
    this.#turn(turn.id).introduce(turn, index + 1, this.#answers(turn));
    this.#turn(turn.id).showPane(this.#parts.switcher.current);
  }

  /** Turn to another answer of a pane. The focus stays on the button that was used. */
  #showAnswer({ gen, step }) {
    const turn = this.#conversation.turnOf(gen);
    const { key, gens } = this.#panesOf(turn).find((pane) => pane.gens.includes(gen));
    this.#chosen.set(`${turn.id} ${key}`, { gen, of: gens.length });
    this.#introduceTurn(turn);
    this.#paint(new Set([gen]));
    this.#pane(gen).focusPager(step);
    const state = stateText(this.#conversation.generation(gen));
    this.#announcer.say(`Answer ${gens.indexOf(gen) + 1} of ${gens.length}: ${state}.`);
  }

  #panesOf(turn) {
    return panesOf(turn, (gen) => this.#conversation.generation(gen));
  }

  #turn(id) {
    if (!this.#turns.has(id)) {
      const element = document.createElement("chat-turn");
      element.className = "turn";
      this.#turns.set(id, element);
      this.#parts.turns.append(element);
    }
    return this.#turns.get(id);
  }

  /** The answer of each pane that is shown, with a name that no other pane of the turn has. */
  #answers(turn) {
    const answers = this.#panesOf(turn).map((pane) => this.#answer(turn, pane));
    return answers.map((answer, index) => {
      const isShared = answers.filter(({ label }) => label === answer.label).length > 1;
      return { ...answer, name: isShared ? `${answer.label} (pane ${index + 1})` : answer.label };
    });
  }

  /** The newest, unless an older one was asked for since it came. */
  #answer(turn, { key, gens }) {
    const chosen = this.#chosen.get(`${turn.id} ${key}`);
    const newest = gens.at(-1);
    const gen = chosen?.of === gens.length ? chosen.gen : newest;
    return { key, gens, gen, label: this.#label(gen), canAskAgain: gen === newest && this.#isLast(turn, key) };
  }

  /** Whether a pane has not been asked anything since. */
  #isLast(turn, key) {
    const later = this.#conversation.turns.slice(this.#conversation.turns.indexOf(turn) + 1);
    return later.every((one) => one.generations.every((gen) => this.#conversation.generation(gen).pane !== key));
  }

  #label(gen) {
    return this.#catalogue.label(this.#conversation.generation(gen).model);
  }

  #pane(gen) {
    for (const turn of this.#turns.values()) {
      const pane = turn.panes.get(gen);
      if (pane) return pane;
    }
    return undefined;
  }

  /** Measure all, paint all, park all: one layout for a frame, however many panes there are. */
  #paint(ids) {
    const pairs = [...ids].map((gen) => [this.#pane(gen), gen]).filter(([pane]) => pane);
    pairs.forEach(([pane]) => pane.measure());
    pairs.forEach(([pane, gen]) => this.#paintPane(pane, gen));
    pairs.forEach(([pane]) => pane.park());
    this.#paintSummary();
  }

  #paintPane(pane, gen) {
    const known = (id) => this.#conversation.generation(id);
    pane.paint(known(gen), this.#conversation.pace(gen), continuedBy(known(gen), known));
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
    const live = this.#conversation.live.length;
    this.#parts.composer.showLive(live);
    this.#parts.switcher.show(this.#newestPanes());
    this.#paintTitle();
  }

  #newestPanes() {
    const turn = this.#conversation.turns.at(-1);
    if (!turn) return [];
    return this.#answers(turn).map(({ gen, label }) => {
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
    for (const turn of this.#turns.values()) turn.showPane(index);
    this.#batch.add(this.#newestGenerations());
  }

  #newestGenerations() {
    return this.#conversation.turns.at(-1)?.generations ?? [];
  }

  #showNewest() {
    const newest = this.#turns.get(this.#conversation.turns.at(-1)?.id);
    newest?.settle();
    newest?.scrollIntoView({ block: "start", behavior: "instant" });
  }

  /** A selection kept some panes from showing their newest blocks; it may be gone now. */
  #releaseHeld() {
    for (const turn of this.#turns.values()) this.#batch.add(turn.heldPanes);
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
    const { generations } = this.#conversation;
    generations.forEach((snapshot) => this.#announcer.know(snapshot));
    const text = restored(generations);
    if (text) this.#announcer.say(text);
  }
}
