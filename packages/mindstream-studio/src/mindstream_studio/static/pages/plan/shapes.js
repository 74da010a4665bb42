/**
 * Types of the API's answers about plans.
 *
 * @typedef {{id: string, tool: string, arguments?: Record<string, unknown>, why?: string, after?: string[]}} Step
 * @typedef {{task?: string, steps?: Step[]}} Plan
 * @typedef {{model_calls: number, tool_calls: number, tokens: number, cost_usd: number, seconds: number, unpriced: number | null}} Spent
 * @typedef {{step: string, tool: string, text: string, failed: boolean, foreign: boolean}} Evidence
 * @typedef {{run: string, task: string, how: string, state: string, answer: string, unanswered: string, stopped: string,
 *   foreign: boolean, plan: Plan | null, evidence: Evidence[], at: number, operation: string, spent?: Spent | null}} Run
 * @typedef {{seq: number, at: number, event: string, run: string, task?: string, how?: string, plan?: Plan, because?: string,
 *   steps?: string[], step?: string, tool?: string, arguments?: any, text?: string, failed?: boolean, foreign?: boolean,
 *   tries?: number, seconds?: number, answer?: string, stopped?: string, unanswered?: string, spent?: Spent}} Row
 * @typedef {{seq: number, at: number, role: string, prompt: string, model: string, input_tokens: number, output_tokens: number,
 *   seconds: number, cost_usd: number | null, error: string}} Call
 * @typedef {{run: string, rows: Row[], calls: Call[]}} RunRows
 * @typedef {{id: string, what: "plan" | "call", text: string, data: any}} Wanted
 * @typedef {{id: string, operation: string, user: string, run: string, state: string, began: number,
 *   progress: {at: number, text: string}[], waits_for: Wanted[], problem: string}} Operation
 */

/** Kinds of log rows that change a run. */
export const MOVING = ["solving", "run_planned", "answer_missing", "plan_kept", "step_began", "step_found", "solved"];

/** The strategies for solving a task, with a description each. @type {Record<string, string>} */
export const WAYS = {
  "rewoo": "plans all steps first, then runs them",
  "react": "thinks, calls a tool and reads its result, again and again",
  "plan-execute": "plans, and reviews the plan after each round of steps",
};
