/** What the server put into the page for the scripts. */

/** Read a JSON data block. */
export const readJson = (id) => JSON.parse(document.getElementById(id).textContent);

/** The content of a `<template>` of templates/chatapp/_templates.html, as a new fragment. */
export const cloneTemplate = (id) => document.getElementById(id).content.cloneNode(true);

export const csrfToken = () => document.querySelector("meta[name=csrf-token]").content;

/** Find the elements of a template by their `data-part`. */
export function parts(root) {
  const found = [...root.querySelectorAll("[data-part]")];
  return Object.fromEntries(found.map((element) => [element.dataset.part, element]));
}

/** Write only what differs, so that nothing is laid out anew for a value that stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Make an element that holds a text. */
export function textElement(name, text, className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}
