/**
 * A conversation that is followed: its state, its connection and its requests. No DOM of its own;
 * it tells its listener what changed.
 */

import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";

export class Session {
  #api;
  #urls;
  #listener;

  /**
   * @param {object} parts
   * @param {object} parts.sync    the sync document that came with the page
   * @param {object} parts.urls    sync, events, socket, turns and cancel, as the server gave them
   * @param {object} parts.api
   * @param {(fetchSync: () => Promise<object>) => import("./connection.js").Ports} parts.ports
   * @param {string} [parts.transport]
   * @param {{changed: (ids: Iterable<string>) => void, turns: () => void, restored: () => void,
   *   status: (status: string, failures: number) => void}} parts.listener
   */
  constructor({ sync, urls, api, ports, transport, listener }) {
    this.#api = api;
    this.#urls = urls;
    this.#listener = listener;
    this.conversation = new Conversation(sync);
    this.connection = new Connection({
      ports: ports(() => api.get(urls.sync)),
      urls,
      transport,
      handlers: {
        cursor: () => this.conversation.cursor,
        frame: (frame) => this.#apply(frame),
        sync: (document) => this.#restore(document),
        status: listener.status,
      },
    });
  }

  /** Send a prompt. The answer may come after the live connection has told of the turn already. */
  async send(prompt) {
    const { turn } = await this.#api.post(this.#urls.turns, prompt);
    if (this.conversation.addTurn(turn).length > 0) this.#listener.turns();
  }

  /** Ask for a generation to be stopped. The log answers with its terminal event. */
  async cancel(gen) {
    await this.#api.post(this.#urls.cancel.replace("{gen}", gen));
  }

  #apply(frame) {
    const outcome = this.conversation.apply(frame);
    if (outcome.turns) this.#listener.turns();
    this.#listener.changed(outcome.changed);
    return outcome;
  }

  #restore(sync) {
    this.conversation.replace(sync);
    this.#listener.restored();
  }
}
