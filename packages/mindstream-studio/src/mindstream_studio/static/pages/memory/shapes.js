/**
 * Types of the API's answers about memories.
 *
 * @typedef {{id: string, text: string, kind: string, created: number, by: string, session: string,
 *   importance: number | null, status: string, superseded_by: string | null, derived_from: string[], seq: number, keywords: string[],
 *   data: Record<string, unknown>}} Memory
 * @typedef {{id: string, text: string, kind: string, confidence: number, receipt: import("../../parts/receipt.js").ReceiptShape}} Recalled
 * @typedef {{memory: Memory, from: Memory[], into: Memory[], cut: boolean}} Lineage
 * @typedef {{sleep: number, at: number, looked_at: number, forgotten: string[], weakened: string[], merged_into: string[],
 *   dream: string, dream_id: string, dreamt_by: string, errors: string[], undone: boolean}} Night
 * @typedef {{forgotten: boolean, asked: string[], drawn: string[], changed: string[], items: string[], left: string[],
 *   pending: boolean}} Removal
 */

/** Kinds of log rows that may change a memory. */
export const CHANGING = ["heard", "said", "follow_up", "thought", "remembered", "belief_changed", "corrected", "slept", "reflected"];

/** Descriptions of a memory's state, by its status in the API. @type {Record<string, string>} */
export const STATES = { holds: "current", superseded: "superseded: another record has replaced it", forgotten: "faded: archived, so that no search finds it", ended: "no longer valid" };
