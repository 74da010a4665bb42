/**
 * Types of the API's answers about a life.
 *
 * @typedef {{number: number, text: string, standing: "open" | "waiting" | "done" | "stopped", until: number | null, result: string}} Task
 * @typedef {{id: string, text: string, late: boolean}} Question
 * @typedef {{id: string, tool: string, arguments: string, foreign: boolean}} Wish a tool call that waits for the user's permission
 * @typedef {{calls: number, tokens: number, usd: number, usd_today: number}} Spent
 * @typedef {{order: string, at: number}} Due
 * @typedef {{goal: string, orders: string[], lived: boolean, halted: string, turn: number, in_turn: boolean, tasks: Task[],
 *   questions: Question[], leave_wanted: Wish[], spent: Spent, due?: Due[]}} Life
 * @typedef {import("../../events.js").Row} Row
 */

/** Kinds of log rows that the diary shows. */
export const DIARY = [
  "life_began", "turn_began", "turn_ended", "task_changed", "questioned", "answered", "leave_asked", "leave_given", "commanded",
  "rested", "noticed", "heard", "folded",
];
/** Kinds of log rows that change the state of a life. */
export const CHANGING = [...DIARY, "replied", "observed", "beat", "leave_used"];
