/**
 * What a pane says under an answer that did not simply end: what happened, and what to do. The
 * messages of errors come from the server and say what to do themselves.
 */

import { State } from "./protocol.js";

const FINISHES = {
  length: "The answer was cut at the length limit. Continue it, or raise Max tokens to get more.",
  content_filter: "The provider’s filter cut this answer.",
  refusal: "The model declined to answer.",
};
const NOT_STATED = "The model service did not say why this answer ended, so it may not be whole.";

/** A text of nothing but spaces, controls and invisible characters says as much as an empty one. */
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
const says = (text) => VISIBLE.test(text);

const sentences = (...parts) => parts.filter(Boolean).join(" ");
const kept = ({ text }) => says(text) && "The text above is kept, and is partial.";

const NOTICES = {
  [State.completed]: ({ finish, text }) => {
    if (FINISHES[finish]) return { title: "", text: FINISHES[finish] };
    if (says(text) && finish === "unknown") return { title: "", text: NOT_STATED };
    return says(text) || finish === "tool_calls" ? null : { title: "", text: "The model ended without an answer." };
  },
  [State.cancelled]: ({ text, cancel }) => ({
    title: "Stopped",
    text: sentences(
      says(text) ? "This answer is partial." : "Nothing had been written yet.",
      cancel?.upstream === "unproven" && "The model did not confirm that it stopped.",
    ),
  }),
  [State.failed]: (snapshot) => ({
    title: "Failed",
    text: sentences(snapshot.error?.message, kept(snapshot)),
  }),
  [State.interrupted]: (snapshot) => ({
    title: "Interrupted",
    text: sentences("The server lost this answer while it was being written.", kept(snapshot), "Retry for a whole answer."),
  }),
};

/** @returns {{title: string, text: string}|null}  null when the answer speaks for itself */
export function noticeOf(snapshot) {
  return NOTICES[snapshot.state]?.(snapshot) ?? null;
}
