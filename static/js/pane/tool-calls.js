import { textElement } from "../page.js";

const OUTCOMES = { succeeded: "Result", failed: "Failed", rejected: "Rejected", unknown: "Outcome unknown" };

/** The list of a generation's tool calls: shown as text, never acted on. */
export class ToolCalls {
  #list;
  #painted = null;

  constructor(list) {
    this.#list = list;
  }

  paint(tools) {
    if (tools === this.#painted) return;
    this.#painted = tools;
    this.#list.hidden = tools.length === 0;
    this.#list.replaceChildren(...tools.map(item));
  }
}

function item({ name, arguments: args, complete, outcome, result }) {
  const element = textElement("li", "", "tool");
  const title = `${complete ? "Tool call" : "Tool call, still coming"}: ${name || "…"}`;
  element.append(textElement("p", title, "tool__title"), textElement("pre", args));
  if (outcome) element.append(textElement("p", OUTCOMES[outcome] ?? outcome), textElement("pre", result ?? ""));
  return element;
}
