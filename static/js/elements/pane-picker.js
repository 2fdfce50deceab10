import { MAX_PANES } from "../catalogue.js";
import { cloneTemplate, parts, setText } from "../page.js";
import { uuid } from "../uuid.js";

/** The panes of the next turn: a model and its parameters for each. Dispatches `panes-change` {panes}. */
export class PanePicker extends HTMLElement {
  #parts;
  #catalogue = null;
  #panes = [];

  connectedCallback() {
    this.#parts = parts(this);
    this.#parts.add.addEventListener("click", () => this.#add());
    this.#parts.toggle.addEventListener("click", () => this.#toggle());
    document.addEventListener("click", ({ target }) => this.#closeFolds(target));
    this.addEventListener("keydown", (event) => event.key === "Escape" && this.#escape(event));
  }

  get panes() {
    return this.#panes;
  }

  show(catalogue, panes) {
    this.#catalogue = catalogue;
    this.#panes = panes;
    this.#parts.choices.replaceChildren(...panes.map((pane) => this.#choice(pane)));
    this.#describe();
  }

  // Changes

  #add() {
    const model = this.#catalogue.nextModel(this.#panes);
    if (!model || this.#panes.length >= MAX_PANES) return;
    const pane = { id: uuid(), model, params: {} };
    this.#parts.choices.append(this.#choice(pane));
    this.#change([...this.#panes, pane]);
    this.#parts.choices.lastElementChild.querySelector("select").focus();
  }

  #remove(id, item) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.#change(this.#panes.filter((pane) => pane.id !== id));
    (next?.querySelector("select") ?? this.#parts.add).focus();
  }

  #edit(id, change) {
    this.#change(this.#panes.map((pane) => (pane.id === id ? { ...pane, ...change } : pane)));
  }

  #change(panes) {
    this.#panes = panes;
    this.#describe();
    this.dispatchEvent(new CustomEvent("panes-change", { bubbles: true, detail: { panes } }));
  }

  // Showing

  #choice(pane) {
    const content = cloneTemplate("pane-choice-template");
    const { item, model, remove, temperature, maxTokens } = parts(content);
    this.#fillModels(model, pane.model);
    temperature.value = pane.params.temperature ?? "";
    maxTokens.value = pane.params.max_tokens ?? "";
    // Another model has other parameters: what was set for the last one is not carried over.
    model.addEventListener("change", () => {
      temperature.value = "";
      maxTokens.value = "";
      this.#edit(pane.id, { model: model.value, params: {} });
    });
    const changeParams = () => this.#edit(pane.id, { params: paramsOf({ temperature, maxTokens }) });
    temperature.addEventListener("change", changeParams);
    maxTokens.addEventListener("change", changeParams);
    remove.addEventListener("click", () => this.#remove(pane.id, item));
    return content;
  }

  #fillModels(select, chosen) {
    const options = this.#catalogue.models.map(({ id, label, available, reason }) => {
      const option = new Option(available ? label : `${label} (${reason})`, id, id === chosen, id === chosen);
      option.disabled = !available;
      return option;
    });
    if (!this.#catalogue.find(chosen)) options.unshift(new Option(`${chosen} (no longer offered)`, chosen, true, true));
    select.replaceChildren(...options);
  }

  /** Number everything that has changed its place. */
  #describe() {
    const { choices, add, summary } = this.#parts;
    [...choices.children].forEach((item, index) => this.#describeChoice(item, index));
    add.disabled = this.#panes.length >= MAX_PANES || this.#catalogue.available.length === 0;
    const count = this.#panes.length;
    setText(summary, count === 1 ? this.#catalogue.label(this.#panes[0].model) : `${count} models`);
  }

  #describeChoice(item, index) {
    const { number, model, remove, fold, foldName, temperature } = parts(item);
    const { params } = this.#panes[index];
    const defaults = this.#catalogue.find(model.value)?.params ?? {};
    setText(number, String(index + 1));
    number.dataset.hue = (index % 8) + 1;
    model.setAttribute("aria-label", `Model of pane ${index + 1}`);
    remove.setAttribute("aria-label", `Remove pane ${index + 1}`);
    setText(foldName, `Parameters of pane ${index + 1}`);
    remove.hidden = this.#panes.length === 1;
    fold.toggleAttribute("data-changed", Object.keys(params).length > 0);
    temperature.placeholder = defaults.temperature ?? "default";
  }

  // Folds

  #toggle() {
    const open = this.toggleAttribute("data-open");
    this.#parts.toggle.setAttribute("aria-expanded", String(open));
  }

  #closeFolds(target) {
    for (const fold of this.querySelectorAll("details[open]")) {
      if (!fold.contains(target)) fold.open = false;
    }
  }

  #escape(event) {
    const fold = event.target.closest("details[open]");
    if (!fold) return;
    fold.open = false;
    fold.querySelector("summary").focus();
  }
}

function paramsOf({ temperature, maxTokens }) {
  const values = { temperature: temperature.valueAsNumber, max_tokens: maxTokens.valueAsNumber };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => !Number.isNaN(value)));
}
