import { createApi } from "../api.js";
import { csrfToken, parts, readJson } from "../page.js";

/** Rename, export or delete the conversation. */
export class ConversationMenu extends HTMLElement {
  #parts;
  #api = createApi(csrfToken());
  #urls = readJson("urls");

  connectedCallback() {
    this.#parts = parts(this);
    const { rename, remove, renameForm, removeForm, exportForm, name } = this.#parts;
    const { renameDialog, removeDialog, exportDialog } = this.#parts;
    rename.addEventListener("click", () => {
      name.value = this.#title.textContent.trim();
      renameDialog.showModal();
      name.select();
    });
    remove.addEventListener("click", () => removeDialog.showModal());
    // The form itself fetches the file, so it works without any script but this.
    this.#parts.export.addEventListener("click", () => exportDialog.showModal());
    exportForm.addEventListener("submit", () => this.#close());
    this.addEventListener("click", ({ target }) => target.closest("[data-action=close]") && this.#close());
    renameForm.addEventListener("submit", (event) => this.#submit(event, () => this.#rename(name.value.trim())));
    removeForm.addEventListener("submit", (event) => this.#submit(event, () => this.#remove()));
  }

  get #title() {
    return document.querySelector(".conversation__title");
  }

  async #submit(event, act) {
    event.preventDefault();
    try {
      await act();
      this.#close();
    } catch (problem) {
      this.#close();
      document.querySelector("chat-composer").showProblem(problem.message);
    }
  }

  async #rename(title) {
    if (title === "") return;
    await this.#api.patch(this.#urls.conversation, { title });
    this.#title.textContent = title;
    document.querySelector("conversation-list").rename(this.dataset.conversation, title);
  }

  async #remove() {
    await this.#api.remove(this.#urls.conversation);
    location.assign(this.#urls.home);
  }

  #close() {
    this.#parts.renameDialog.close();
    this.#parts.removeDialog.close();
    this.#parts.exportDialog.close();
  }
}
