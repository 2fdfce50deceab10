import { fragmentOf } from "../server-html.js";

/**
 * An answer's text: blocks that the server rendered, then the plain tail.
 *
 * The tail is one text node that only grows; it moves into the last block while that is an open
 * code fence or paragraph. A block whose HTML stays is never touched, so selection, focus and scroll in it
 * survive. While the reader selects in what would be replaced, replacing waits.
 */
export class AnswerBody extends HTMLElement {
  #blocks = [];
  #tail = document.createTextNode("");
  #loose = looseTail();
  #units = 0;
  #held = false;

  connectedCallback() {
    if (this.#loose.parentNode !== this) this.append(this.#loose);
    if (!this.#tail.parentNode) this.#loose.append(this.#tail);
  }

  /** True while a selection keeps newer blocks from being shown: paint again when it is gone. */
  get held() {
    return this.#held;
  }

  /** Show a snapshot's `blocks` and what of `text` follows them. */
  paint({ blocks, text, shownUnits }) {
    this.#held = this.#wouldDisturb(blocks, shownUnits);
    if (!this.#held) {
      blocks.forEach((block, index) => this.#paintBlock(block, index));
      this.#blocks.splice(blocks.length).forEach(({ element }) => element.remove());
      this.#units = shownUnits;
      this.#placeTail();
    }
    this.#paintTail(text.slice(this.#units));
  }

  #wouldDisturb(blocks, shownUnits) {
    const selection = getSelection();
    if (selection.isCollapsed || selection.rangeCount === 0) return false;
    const range = selection.getRangeAt(0);
    const changing = this.#blocks.filter(({ html }, index) => html !== blocks[index]?.html);
    const touched = changing.map(({ element }) => element);
    if (shownUnits !== this.#units) touched.push(this.#tail);
    return touched.some((node) => range.intersectsNode(node));
  }

  #paintBlock({ html, sealed }, index) {
    const block = (this.#blocks[index] ??= this.#addBlock());
    if (block.html !== html) fill(block, html);
    block.sealed = sealed;
  }

  #addBlock() {
    const element = document.createElement("div");
    element.className = "answer__block";
    this.#loose.before(element);
    return { element, html: "", sealed: false, bar: null };
  }

  #placeTail() {
    const place = this.#openCode() ?? this.#openParagraph() ?? this.#loose;
    if (this.#tail.parentNode === place) return;
    // A paragraph's next line follows a line end, which the rendered paragraph does not hold.
    if (place !== this.#loose && place.localName === "p") place.append("\n");
    place.append(this.#tail);
  }

  /** The paragraph that the tail goes on with, so that its next line does not jump up when it is rendered. */
  #openParagraph() {
    const last = this.#blocks.at(-1);
    const only = last && !last.sealed ? last.element.lastElementChild : null;
    return only?.localName === "p" ? only : null;
  }

  /** The code element of an open fence: the server leaves it empty for the tail. */
  #openCode() {
    const last = this.#blocks.at(-1);
    if (!last || last.sealed) return null;
    const code = last.element.querySelector("pre > code");
    const isEmpty = code && [...code.childNodes].every((node) => node === this.#tail);
    return isEmpty ? code : null;
  }

  #paintTail(text) {
    const { data } = this.#tail;
    if (text === data) return;
    // Appending keeps ranges in the node alive and lays out only what is new.
    if (text.startsWith(data)) this.#tail.appendData(text.slice(data.length));
    else this.#tail.data = text;
  }
}

function looseTail() {
  const paragraph = document.createElement("p");
  paragraph.className = "answer__tail";
  paragraph.dir = "auto";
  return paragraph;
}

function fill(block, html) {
  const { element } = block;
  for (const node of [...element.childNodes]) {
    if (node !== block.bar) node.remove();
  }
  element.append(fragmentOf(html));
  element.hidden = html === "";
  block.html = html;
  element.querySelectorAll("pre").forEach((pre) => makeScrollable(pre, "Code"));
  if (element.firstElementChild?.localName === "table") makeScrollable(element, "Table");
  const pre = [...element.children].find(({ localName }) => localName === "pre");
  // The bar stays when a fence closes, so that its button keeps the focus and nothing shifts.
  if (pre && block.bar) return;
  block.bar?.remove();
  block.bar = pre ? codeBar(pre) : null;
  if (block.bar) element.prepend(block.bar);
}

/** What may be wider than its pane is reached and scrolled by keyboard. */
function makeScrollable(element, name) {
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", name);
}

function codeBar(pre) {
  const bar = document.createElement("div");
  bar.className = "code-bar";
  const language = document.createElement("span");
  language.textContent = infoOf(pre);
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "button button--quiet button--small";
  copy.dataset.action = "copy-code";
  copy.textContent = "Copy code";
  bar.append(language, copy);
  return bar;
}

/** What the answer said of its code: the server writes it above, unless it is a language's name, which is a class. */
function infoOf(pre) {
  const said = pre.previousElementSibling?.matches(".code-info") ? pre.previousElementSibling.textContent : "";
  return said || (/(?:^|\s)language-([\w+#.-]+)/u.exec(pre.querySelector("code")?.className ?? "")?.[1] ?? "");
}
