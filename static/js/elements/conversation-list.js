import { setText } from "../page.js";

/** The list of conversations; the server writes it, this keeps it right while the page is open. */
export class ConversationList extends HTMLElement {
  rename(id, title) {
    const link = [...this.querySelectorAll("[data-conversation]")].find(({ dataset }) => dataset.conversation === id);
    if (link) setText(link, title);
  }
}
