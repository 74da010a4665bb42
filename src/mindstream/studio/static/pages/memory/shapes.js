/**
 * What the API gives of memories.
 *
 * @typedef {{id: string, text: string, kind: string, created: number, by: string, session: string,
 *   importance: number | null, status: string, superseded_by: string | null, keywords: string[],
 *   data: Record<string, unknown>}} Memory
 * @typedef {{id: string, text: string, kind: string, receipt: import("../../parts/receipt.js").ReceiptShape}} Recalled
 * @typedef {{memory: Memory, from: Memory[], into: Memory[], cut: boolean}} Lineage
 * @typedef {{forgotten: boolean, asked: string[], drawn: string[], changed: string[], items: string[]}} Removal
 */

/** Rows of the log after which a memory may be another. */
export const CHANGING = ["heard", "said", "follow_up", "thought", "remembered", "belief_changed", "corrected", "slept", "reflected"];
