import { AnswerBody } from "/static/js/elements/answer-body.js";
import { emptySnapshot, fold, foldView } from "/static/js/snapshot.js";
import { equal, nextFrame, ok, test } from "./suite.js";

customElements.define("answer-body", AnswerBody);

/** An answer on the page, and a driver that writes it. */
function write() {
  const body = document.body.appendChild(document.createElement("answer-body"));
  let snapshot = fold(emptySnapshot("g"), { gen: "g", attempt: 1, seq: 1, type: "start", model: "m", pane: "p" });
  const paint = () => body.paint(snapshot);
  return {
    body,
    text(text) {
      snapshot = fold(snapshot, { gen: "g", attempt: 1, seq: snapshot.seq + 1, type: "text_delta", text });
      paint();
    },
    block(index, html, sealed, length = [...snapshot.text].length) {
      snapshot = foldView(snapshot, { gen: "g", after_seq: snapshot.seq, index, html, sealed, length });
      paint();
    },
    paint,
  };
}

function select(node, from, to) {
  const range = document.createRange();
  range.setStart(node, from);
  range.setEnd(node, to);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  return selection;
}

const tailOf = ({ body }) => body.querySelector(".answer__tail").firstChild;

test("text is text, whatever it looks like", () => {
  const answer = write();
  answer.text("<img src=x onerror=alert(1)>");
  equal([answer.body.querySelector("img"), answer.body.textContent], [null, "<img src=x onerror=alert(1)>"]);
});

test("the tail is one text node that grows", () => {
  const answer = write();
  answer.text("Hel");
  const node = tailOf(answer);
  for (let n = 0; n < 20; n += 1) answer.text("lo ");
  ok(tailOf(answer) === node && node.parentNode.childNodes.length === 1);
});

test("a block takes its text out of the tail", () => {
  const answer = write();
  answer.text("One\n\nTwo");
  answer.block(0, "<p>One</p>", true, 5);
  equal([answer.body.querySelector(".answer__block").textContent, tailOf(answer).data], ["One", "Two"]);
});

test("a sealed block is never touched again", async () => {
  const answer = write();
  answer.text("One\n\n");
  answer.block(0, "<p>One</p>", true);
  const block = answer.body.querySelector(".answer__block");
  let changes = 0;
  const observer = new MutationObserver((records) => (changes += records.length));
  observer.observe(block, { childList: true, characterData: true, attributes: true, subtree: true });
  for (let n = 1; n < 40; n += 1) {
    answer.text(`Paragraph ${n}\n\n`);
    answer.block(n, `<p>Paragraph ${n}</p>`, true);
  }
  await nextFrame();
  equal(changes, 0);
  ok(answer.body.querySelector(".answer__block") === block);
});

test("a whole-document pass replaces only what differs", () => {
  const answer = write();
  answer.text("[a]\n\nb\n\n");
  answer.block(0, "<p>[a]</p>", true, 5);
  answer.block(1, "<p>b</p>", true);
  const [first, second] = [...answer.body.querySelectorAll("p")];
  answer.block(0, '<p><a href="https://x.example">a</a></p>', true);
  ok(!first.isConnected && second.isConnected);
});

test("an open paragraph goes on with the tail, so that its next line does not jump", () => {
  const answer = write();
  answer.text("One\n");
  answer.block(0, "<p>One</p>", false);
  answer.text("two");
  const paragraph = answer.body.querySelector(".answer__block p");
  equal(paragraph.textContent, "One\ntwo");
  answer.text("\n\nThree");
  answer.block(0, "<p>One\ntwo</p>", true, 9);
  equal([answer.body.querySelector(".answer__block p").textContent, tailOf(answer).data], ["One\ntwo", "Three"]);
});

test("an open fence holds the tail inside its code", () => {
  const answer = write();
  answer.text("```py\nprint(");
  answer.block(0, '<pre><code class="language-py"></code></pre>', false, 6);
  answer.text("1)\n");
  equal(answer.body.querySelector("pre code").textContent, "print(1)\n");
});

test("a fence that closes gives the tail back", () => {
  const answer = write();
  answer.text("```py\nx\n");
  answer.block(0, '<pre><code class="language-py"></code></pre>', false, 6);
  answer.text("```\nAfter");
  answer.block(0, '<pre><code class="language-py">x\n</code></pre>', true, 12);
  equal([answer.body.querySelector("pre").textContent, tailOf(answer).data], ["x\n", "After"]);
});

test("the copy button of a fence stays when it closes", () => {
  const answer = write();
  answer.text("```py\nx\n");
  answer.block(0, '<pre><code class="language-py"></code></pre>', false, 6);
  const button = answer.body.querySelector("[data-action=copy-code]");
  button.focus();
  answer.block(0, '<pre><code class="language-py">x\n</code></pre>', true);
  ok(document.activeElement === button);
});

test("a block that becomes empty is gone from sight", () => {
  const answer = write();
  answer.text("[a]: b\n\n");
  answer.block(0, "<p>[a]: b</p>", true);
  answer.block(0, "", true);
  equal([answer.body.querySelector(".answer__block").hidden, answer.body.textContent], [true, ""]);
});

test("a selection in the tail survives text that follows", () => {
  const answer = write();
  answer.text("Select me, please. ");
  const selection = select(tailOf(answer), 0, 9);
  for (let n = 0; n < 200; n += 1) answer.text("more ");
  equal(selection.toString(), "Select me");
  selection.removeAllRanges();
});

test("a selection in a sealed block survives blocks that follow", () => {
  const answer = write();
  answer.text("Select me\n\n");
  answer.block(0, "<p>Select me</p>", true);
  const selection = select(answer.body.querySelector("p").firstChild, 0, 6);
  for (let n = 1; n < 20; n += 1) {
    answer.text("more\n\n");
    answer.block(n, "<p>more</p>", true);
  }
  equal([selection.toString(), answer.body.held], ["Select", false]);
  selection.removeAllRanges();
});

test("a block waits while the reader selects what it would replace", () => {
  const answer = write();
  answer.text("Select me\n\n");
  const selection = select(tailOf(answer), 0, 6);
  answer.block(0, "<p>Select me</p>", true);
  answer.text("and more");
  equal([answer.body.held, selection.toString()], [true, "Select"]);
  equal(answer.body.textContent, "Select me\n\nand more");
  selection.removeAllRanges();
  answer.paint();
  equal([answer.body.held, answer.body.querySelector("p").textContent], [false, "Select me"]);
});

test("selecting inside an open fence survives its lines", () => {
  const answer = write();
  answer.text("```\nfirst\n");
  answer.block(0, "<pre><code></code></pre>", false, 4);
  const selection = select(answer.body.querySelector("code").firstChild, 0, 5);
  for (let n = 0; n < 50; n += 1) answer.text("line\n");
  equal(selection.toString(), "first");
  selection.removeAllRanges();
});

test("astral characters are cut where the protocol says", () => {
  const answer = write();
  answer.text("👩🌍\n\n👧");
  answer.block(0, "<p>👩🌍</p>", true, 4);
  equal(tailOf(answer).data, "👧");
});

test("the bar over code says what the answer said of it", () => {
  const answer = write();
  answer.text("```\n");
  const bars = ['<pre><code class="language-py"></code></pre>', '<p class="code-info">js a.js</p>\n<pre><code></code></pre>'];
  bars.forEach((html, index) => answer.block(index, html, true));
  equal([...answer.body.querySelectorAll(".code-bar > span")].map(({ textContent }) => textContent), ["py", "js a.js"]);
});
