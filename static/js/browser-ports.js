/** The connection's ports, as this browser has them. */

import { after } from "./timers.js";

/** @returns {import("./connection.js").Ports} */
export function browserPorts(fetchSync) {
  return {
    socket: (url) => new WebSocket(url.replace(/^http/u, "ws")),
    events: (url) => new EventSource(url),
    sync: fetchSync,
    now: () => performance.now(),
    after,
    random: Math.random,
    hidden: () => document.hidden,
    report: (error) => reportError(error),
  };
}

/**
 * Tell the connection about the life of the page. Every one of these only means "look whether the
 * connection is alive", so they may come twice or in any order.
 */
export function followPageLife(connection, signal) {
  const wake = () => connection.wake();
  document.addEventListener("visibilitychange", () => document.hidden || wake(), { signal });
  document.addEventListener("resume", wake, { signal });
  window.addEventListener("online", wake, { signal });
  // An open socket would keep the page out of the browser's back-forward cache.
  window.addEventListener("pagehide", () => connection.stop(), { signal });
  window.addEventListener("pageshow", ({ persisted }) => persisted && connection.resync(), { signal });
}
