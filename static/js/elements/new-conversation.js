import { createApi } from "../api.js";
import { Catalogue } from "../catalogue.js";
import { csrfToken, parts, readJson } from "../page.js";

/** The empty page: the first prompt makes the conversation and goes to it. */
export class NewConversation extends HTMLElement {
  #api = createApi(csrfToken());
  #urls = readJson("urls");
  #made = null;

  connectedCallback() {
    const { composer, examples } = parts(this);
    composer.begin(new Catalogue(readJson("models")), [], (draft) => this.#send(draft));
    examples.addEventListener("click", ({ target }) => {
      const example = target.closest("button");
      if (example) composer.suggest(example.dataset.prompt);
    });
  }

  /** Trying again after a failure goes on with the conversation that was made already. */
  async #send(draft) {
    this.#made ??= await this.#api.post(this.#urls.conversations);
    await this.#api.post(this.#urls.turns.replace("{conversation}", this.#made.id), draft);
    location.assign(this.#made.url);
  }
}
