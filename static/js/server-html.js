/**
 * The one place where HTML enters the page. What comes here was rendered and sanitised by the
 * server; the Content Security Policy refuses every other way in.
 */

const POLICY = "server-html";

const policy = globalThis.trustedTypes?.createPolicy(POLICY, { createHTML: (html) => html });

/** Parse into a fragment that is inert until it is inserted. */
export function fragmentOf(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content;
}
