/** The JSON API. Every refusal comes as RFC 9457 problem details and is thrown as a Problem. */

const OFFLINE = "The server cannot be reached. Nothing is lost; try again when you are online.";

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
}

/**
 * @param {string} csrfToken
 * @param {typeof fetch} send
 */
export function createApi(csrfToken, send = (...args) => fetch(...args)) {
  const request = async (method, url, body) => {
    const response = await send(url, options(method, csrfToken, body)).catch(() => {
      throw new Problem(OFFLINE);
    });
    if (!response.ok) throw await problemOf(response);
    return response.status === 204 ? null : response.json();
  };
  return {
    get: (url) => request("GET", url),
    post: (url, body = {}) => request("POST", url, body),
    patch: (url, body) => request("PATCH", url, body),
    remove: (url) => request("DELETE", url),
  };
}

function options(method, csrfToken, body) {
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken };
  if (body === undefined) return { method, headers, cache: "no-store" };
  return { method, headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

async function problemOf(response) {
  const data = await response.json().catch(() => ({}));
  const detail = data.detail || data.title || `The server answered with status ${response.status}.`;
  return new Problem(detail, { status: response.status, code: data.code });
}
