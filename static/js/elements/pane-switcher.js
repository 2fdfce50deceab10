import { setText } from "../page.js";

/** On a narrow page: which pane is seen. Dispatches `pane-show` {index}. */
export class PaneSwitcher extends HTMLElement {
  #current = 0;

  connectedCallback() {
    this.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button) this.#choose([...this.children].indexOf(button));
    });
  }

  get current() {
    return this.#current;
  }

  /** @param {{label: string, state: string, stateText: string}[]} panes  those of the newest turn */
  show(panes) {
    this.hidden = panes.length < 2;
    while (this.children.length > panes.length) this.lastElementChild.remove();
    while (this.children.length < panes.length) this.append(switchButton());
    this.#current = Math.min(this.#current, Math.max(0, panes.length - 1));
    panes.forEach((pane, index) => this.#describe(this.children[index], pane, index));
  }

  #describe(button, { label, state, stateText }, index) {
    setText(button.lastElementChild, label);
    setText(button.firstElementChild, String(index + 1));
    button.dataset.state = state;
    button.dataset.hue = (index % 8) + 1;
    button.setAttribute("aria-label", `Pane ${index + 1}: ${label}, ${stateText}`);
    button.setAttribute("aria-pressed", String(index === this.#current));
  }

  #choose(index) {
    this.#current = index;
    [...this.children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === index)));
    this.dispatchEvent(new CustomEvent("pane-show", { bubbles: true, detail: { index } }));
  }
}

function switchButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "switch";
  const label = document.createElement("span");
  label.className = "switch__label";
  label.dir = "auto";
  button.append(document.createElement("span"), label);
  return button;
}
