/**
 * What the API gives of talks.
 *
 * @typedef {{session: string, first: number, last: number, lines: number, opening: string, seq: number}} Session
 * @typedef {import("../../events.js").Row} Row  a row of the log
 * @typedef {{heard: Row, rows: Row[], isNow: boolean}} Exchange  what was heard, and every row that came of it, in order;
 *   `isNow`: it is shown as it stands now, not as it stood
 */

/** What stands in the place of words that were erased. */
export const ERASED = "[erased]";

/** Kinds of rows that a talk is made of. */
export const KINDS = [
  "opened", "heard", "waiting", "said", "follow_up", "left_unsaid", "thought", "set_aside", "believed", "belief_changed",
  "plan_made", "tool_called", "observed", "model_called", "decided", "judged", "alarmed", "error",
];

/** Kinds that beliefs and plans are made of, of earlier talks too. */
export const BELIEVING = ["thought", "belief_changed", "plan_made"];
