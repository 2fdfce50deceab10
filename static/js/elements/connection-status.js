import { Status } from "../connection.js";
import { setText } from "../page.js";

// A blip is no news: failures before this many are shown as nothing at all.
const QUIET_FAILURES = 2;

const OFFLINE = "Offline. Answers go on at the server; this page will catch up.";
const TEXTS = {
  [Status.connecting]: "Connecting…",
  [Status.syncing]: "Catching up…",
  [Status.waiting]: "Reconnecting…",
  [Status.gone]: "Deleted, or not yours any more. Did you sign out?",
};

/** One quiet line on how the page is connected; empty while all is well. Its style waits a second. */
export class ConnectionStatus extends HTMLElement {
  show(status, failures) {
    const troubled = failures > QUIET_FAILURES && status !== Status.live && status !== Status.gone;
    this.dataset.status = troubled ? "offline" : status;
    setText(this, troubled ? OFFLINE : (TEXTS[status] ?? ""));
  }
}
