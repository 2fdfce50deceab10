/**
 * The two ways to a live connection, made alike: each is opened with handlers
 * `opened()`, `heard(frame, units)`, `lost(code)` and gives `{acknowledge(cursor), close()}`.
 */

import { Frame } from "./protocol.js";

function withCursor(address, cursor) {
  const url = new URL(address);
  url.searchParams.set("cursor", cursor);
  return url.href;
}

export function openSocket({ ports, urls }, cursor, { opened, heard, lost }) {
  const socket = ports.socket(withCursor(urls.socket, cursor));
  socket.onopen = opened;
  socket.onmessage = ({ data }) => heard(decode(data), data.length);
  socket.onclose = ({ code }) => lost(code);
  return {
    acknowledge: (at) => socket.send(JSON.stringify({ type: "ack", cursor: at })),
    close: () => socket.close(1000),
  };
}

/**
 * EventSource's own retry waits for seconds and gives up for ever on any reply but 200, so every
 * error ends this transport, and the connection decides when to open the next one from its cursor.
 */
export function openEvents({ ports, urls }, cursor, { opened, heard, lost }) {
  const source = ports.events(withCursor(urls.events, cursor));
  source.onopen = opened;
  source.onmessage = ({ data }) => heard(decode(data), data.length);
  source.onerror = () => {
    source.close();
    lost();
  };
  // Reconnecting from the cursor is the acknowledgement.
  return { acknowledge() {}, close: () => source.close() };
}

/** What is no JSON was cut or changed on its way: the same as having missed it. */
function decode(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { type: Frame.resync };
  }
}
