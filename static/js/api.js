/** The JSON API. Every refusal comes as RFC 9457 problem details and is thrown as a Problem. */

import { after } from "./timers.js";

const OFFLINE = "The server cannot be reached. Nothing is lost; try again when you are online.";
const SILENT = "The server did not answer. Nothing is lost; try again.";
const UNREADABLE = "Something between this page and its server answered in its place. Nothing is lost; try again.";

// A reply may be lost without any sign. A slow one is waited for as long as some of it comes within this time.
const SILENCE_MS = 30_000;

export class Problem extends Error {
  /**
   * @param {string} detail  a sentence for a person
   * @param {{status?: number, code?: string}} [more]  status 0: no answer came at all
   */
  constructor(detail, { status = 0, code = "" } = {}) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
  }

  /** The thing asked for is not there, or not ours: asking again changes nothing. */
  get gone() {
    return this.status === 404;
  }

  /** Nobody answered, or whoever did could not just now: the same request may get through later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * @param {string} csrfToken  for where something on the way takes the Origin from a request. It may be outdated: a
 *   server that sees the Origin does not look at it.
 * @param {{send?: typeof fetch, after?: typeof after}} [ports]
 */
export function createApi(csrfToken, ports = {}) {
  const request = async (method, url, body, more) => {
    const { status, ok, text } = await exchange(url, { ...options(method, csrfToken, body), ...more }, ports);
    if (!ok) throw problemOf(status, text);
    return text === "" ? null : read(text);
  };
  return {
    get: (url) => request("GET", url),
    post: (url, body = {}) => request("POST", url, body),
    // A request that goes out also when the page is left in the same moment.
    postForCertain: (url, body = {}) => request("POST", url, body, { keepalive: true }),
    patch: (url, body) => request("PATCH", url, body),
    remove: (url) => request("DELETE", url),
  };
}

function options(method, csrfToken, body) {
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken };
  if (body === undefined) return { method, headers, cache: "no-store" };
  return { method, headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** Send, and read the whole reply, unless nothing is heard for too long. */
async function exchange(url, request, { send = (...args) => fetch(...args), after: later = after }) {
  const silence = new AbortController();
  const wait = () => later(SILENCE_MS, () => silence.abort());
  let stopWaiting = wait();
  const heard = () => {
    stopWaiting();
    stopWaiting = wait();
  };
  try {
    const response = await send(url, { ...request, signal: silence.signal });
    heard();
    return { status: response.status, ok: response.ok, text: await textOf(response, heard) };
  } catch {
    throw new Problem(silence.signal.aborted ? SILENT : OFFLINE);
  } finally {
    stopWaiting();
  }
}

async function textOf({ body }, heard) {
  const pieces = [];
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader.read()) {
    heard();
    pieces.push(piece.value);
  }
  return pieces.join("");
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(UNREADABLE);
  }
}

function problemOf(status, text) {
  const { detail, title, code } = detailsOf(text);
  return new Problem(detail || title || `The server answered with status ${status}.`, { status, code });
}

function detailsOf(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
