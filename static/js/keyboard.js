/**
 * What Enter does in a prompt. Pure.
 *
 * A keyboard on the screen has no Shift and Enter, so there Enter begins a line, and a button sends. No browser tells
 * whether a keyboard is there: a finger as the only pointer is the sign that it is on the screen.
 */

export const ONLY_TOUCH = "(pointer: coarse) and (not (any-pointer: fine))";

// What Safari says of the Enter that ended composing before its keydown.
const COMPOSED = 229;

/**
 * @param {KeyboardEvent} event
 * @param {boolean} isOnScreen  whether the keyboard is one on the screen
 */
export function sends(event, isOnScreen) {
  // While an input method composes, Enter chooses a candidate.
  if (event.key !== "Enter" || event.isComposing || event.keyCode === COMPOSED) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !event.shiftKey && !event.altKey && !isOnScreen;
}
