/**
 * Types of the API's answers about conversations.
 *
 * @typedef {{session: string, first: number, last: number, lines: number, opening: string, seq: number}} Session
 * @typedef {import("../../events.js").Row} Row  a row of the log
 * @typedef {{heard: Row, rows: Row[], isNow: boolean}} Exchange  what was heard, and every row that came of it, in order;
 *   `isNow`: the newest state is shown, not an earlier one
 */

/** The text that replaces erased text. */
export const ERASED = "[erased]";

/** Kinds of rows that a conversation consists of. */
export const KINDS = [
  "opened", "heard", "waiting", "said", "follow_up", "left_unsaid", "thought", "set_aside", "believed", "belief_changed",
  "plan_made", "tool_called", "observed", "model_called", "decided", "judged", "alarmed", "error",
];

/** Kinds of rows with beliefs and plans, also of earlier conversations. */
export const BELIEVING = ["thought", "belief_changed", "plan_made"];
