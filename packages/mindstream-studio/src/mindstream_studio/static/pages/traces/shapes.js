/**
 * Types of the API's answers about model calls.
 *
 * @typedef {{seq: number, at: number, role: string, prompt: string, model: string, input_tokens: number, output_tokens: number,
 *   cached_tokens: number, seconds: number, first_part_s: number | null, cost_usd: number | null, cut: string, error: string,
 *   mended: boolean, about: number[], resident: string, step: number | null, kept: boolean}} Call
 * @typedef {import("../../events.js").Row} Row
 * @typedef {{call: Call, messages: {role: string, text: string}[], answered: string, about: Row[]}} CallWords
 * @typedef {{name: string, calls: number, failed: number, broken_off: number, input_tokens: number, output_tokens: number,
 *   cached_tokens: number, seconds: number, cost_usd: number | null, free: number, unpriced: number}} Total
 * @typedef {{of: "token" | "server", tokens: number | null, usd: number | null, spent_tokens: number | null, spent_usd: number | null}} Limits
 * @typedef {{total: Total, by: Record<string, Total[]>, days: Record<string, Total[]>, limits: Limits | null}} Cost
 */
import { params } from "../../state.js";

/** Return the API path of the calls: a town's if the link names one, else the user's. */
export const sourcePath = () => (params.value.town ? `/towns/${encodeURIComponent(params.value.town)}` : "/users/{user}");

/** Error of calls that the caller cancelled because the answer was no longer needed. */
export const BROKEN_OFF = "broken off";

/** @param {Call} call */
export const isFailed = ({ error }) => error !== "" && error !== BROKEN_OFF;

const UTC_DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const DAY_S = 86_400;

/** Format a day of the bill; days are in UTC. @param {string} day as 2026-11-24 */
export const utcDay = (day) => UTC_DAY.format(Date.parse(day));

/** Return the start and end of a day of the bill. @param {string} day @returns {{since?: number, until?: number}} */
export function timesOf(day) {
  const since = Date.parse(day) / 1000;
  return Number.isFinite(since) ? { since, until: since + DAY_S - 0.001 } : {};
}
