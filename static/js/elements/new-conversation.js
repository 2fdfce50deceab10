import { Problem, createApi } from "../api.js";
import { Catalogue } from "../catalogue.js";
import { noteAsked } from "../just-asked.js";
import { csrfToken, parts, readJson } from "../page.js";
import { tabStorage } from "../tab-storage.js";

const NO_COOKIE = "The browser keeps no cookie of this site, so the conversation would be nobody’s. Allow it, then try again.";

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

  /** Trying again after a failure goes on with the conversation that was made already, unless its session is gone. */
  async #send(draft) {
    const wasMade = this.#made !== null;
    try {
      await this.#ask(draft);
    } catch (problem) {
      if (!problem.gone) throw problem;
      this.#made = null;
      if (!wasMade) throw new Problem(NO_COOKIE);
      await this.#send(draft);
    }
  }

  async #ask(draft) {
    this.#made ??= await this.#api.post(this.#urls.conversations);
    const { id, url } = this.#made;
    await this.#api.post(this.#urls.turns.replace("{conversation}", id), draft);
    // Somebody may come back to this page, and ask for another.
    this.#made = null;
    noteAsked(tabStorage(), id);
    location.assign(url);
  }
}
