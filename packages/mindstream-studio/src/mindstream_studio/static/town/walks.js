// Walks of residents: the spots of a walk, one per step.

import { at } from "./lists.js";

/** @import { Recording, Spot } from "./types.js" */

/** @type {Record<string, Spot>} */
const MOVES = { R: [1, 0], L: [-1, 0], D: [0, 1], U: [0, -1], S: [0, 0] };

/**
 * Decode a walk: `12,7:R3D12`, with `;x,y` for a jump to a tile that is not a neighbour.
 * @param {string} text
 * @returns {Int32Array} x and y by turns
 */
export function readWalk(text) {
  const [head = "", runs = ""] = text.split(":");
  let [x = 0, y = 0] = head.split(",").map(Number);
  const spots = [x, y];
  for (const [, letter = "", count, toX, toY] of runs.matchAll(/([RLDUS])(\d{1,6})|;(-?\d{1,9}),(-?\d{1,9})/g)) {
    if (!letter) spots.push(x = Number(toX), y = Number(toY));
    const [moveX, moveY] = MOVES[letter] ?? [0, 0];
    for (let i = 0; letter && i < Number(count); i++) spots.push(x += moveX, y += moveY);
  }
  return Int32Array.from(spots);
}

/**
 * The decoded walk of a text, by the text's number.
 * @param {Recording} town
 * @param {number} text
 */
export function walkOf(town, text) {
  let walk = town.walks.get(text);
  if (!walk) town.walks.set(text, walk = readWalk(town.texts[text] ?? ""));
  return walk;
}

/**
 * The number of steps of a walk.
 * @param {Int32Array} walk
 */
export const lengthOf = (walk) => walk.length / 2 - 1;

/**
 * The position on a walk at a step.
 * @param {Int32Array} walk
 * @param {number} steps  since it began
 * @returns {Spot}
 */
export function spotOn(walk, steps) {
  const i = 2 * Math.max(0, Math.min(steps, lengthOf(walk)));
  return [at(walk, i), at(walk, i + 1)];
}
