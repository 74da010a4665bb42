/**
 * Types of the API's answers about pools.
 *
 * @typedef {{pool: string, domain: string, owner: string, members: string[], exemplars: number, rubrics: number}} Pool
 * @typedef {{name: string, points: number, asks: string, others: boolean}} Criterion
 * @typedef {{version: number, threshold: number, criteria: Criterion[]}} Rubric
 * @typedef {{source: string, pairs: number, orders: number, trusted: boolean | null, foreign: number}} Source
 * @typedef {{number: number, learned_from: number, helps: number, before: number, held: boolean, basis: string}} Version
 * @typedef {{pool: string, domain: string, owner: string, rubrics: Rubric[], sources: Source[], versions: Version[]}} Details
 * @typedef {{id: string, at: number, query: string, answer: string, writer: string, asked_by: string, model: string,
 *   verdict: "admitted" | "rejected" | "", score: number, grades: Record<string, number>, reasons: string[], by: string,
 *   by_hand: boolean, rubric: number, fit: number | null, served: boolean, unserved: string[], shown: string[]}} Pair
 * @typedef {{id: string, query: string, answer: string, writer: string}} Exemplar
 * @typedef {{id: string, text: string, applies: string, state: string, sources: string[], writer: string, asked_by: string,
 *   private: boolean, untrusted: boolean, at: number, confirmed_by: number, vouched: boolean, contradicted_by: number, right: number,
 *   wrong: number, flagged: boolean, disputes: string[], retired: string, by_hand: string}} Lesson
 * @typedef {{points: {size: number, helped: number, untrained: number}[], why: string}} Growth
 */

/** Return the API path of a pool. @param {string} pool */
export const pathOf = (pool) => `/users/{user}/pools/${encodeURIComponent(pool)}`;
