// The ground: the place at a spot, a spot's point on the map, and the names of places.

import { at } from "./lists.js";

/** @import { Point, Recording, Spot } from "./types.js" */

/**
 * The point of a spot on the map.
 * @param {Recording} town
 * @param {Spot} spot
 * @returns {Point}
 */
export function pointOf(town, [x, y]) {
  if (town.cells || !town.boxes || !town.roads) return [x + 0.5, y + 0.5];
  const boxes = town.boxes;
  /** @type {(i: number) => Point} */
  const middle = (i) => [at(boxes, i)[1] + at(boxes, i)[3] / 2, at(boxes, i)[2] + at(boxes, i)[4] / 2];
  if (y === 0) return middle(Math.min(x, boxes.length - 1));
  const [from, to, steps] = at(town.roads, y - 1);
  const [a, b] = [middle(from), middle(to)];
  return [a[0] + ((b[0] - a[0]) * x) / steps, a[1] + ((b[1] - a[1]) * x) / steps];
}

/**
 * The number of the narrowest place at a spot; 0: none but the world.
 * @param {Recording} town
 * @param {Spot} spot
 */
export function placeAt(town, [x, y]) {
  if (town.cells) return x < 0 || y < 0 || x >= town.size[0] || y >= town.size[1] ? 0 : at(town.cells, y * town.size[0] + x);
  const boxes = town.boxes ?? [];
  return y === 0 ? at(boxes, Math.min(x, boxes.length - 1))[0] : 0;
}

/**
 * The narrowest place at a point of the map.
 * @param {Recording} town
 * @param {Point} point
 */
export function placeOn(town, [x, y]) {
  if (town.cells) return placeAt(town, [Math.floor(x), Math.floor(y)]);
  return ((town.boxes ?? []).find(([, left, top, wide, high]) => x >= left && x <= left + wide && y >= top && y <= top + high) ?? [0])[0];
}

/**
 * The places that contain a place, from the widest, and the place itself last; without the world.
 * @param {Recording} town
 * @param {number} place
 */
export function around(town, place) {
  /** @type {number[]} */
  const found = [];
  for (let each = place; each > 0; each = at(town.places, each)[0]) found.unshift(each);
  return found;
}

/**
 * @param {Recording} town
 * @param {number} place
 */
export const arenaOf = (town, place) => around(town, place).slice(0, 2).pop() ?? 0;

/**
 * @param {Recording} town
 * @param {number} place
 * @param {number} outer
 */
export function isIn(town, place, outer) {
  for (let each = place; each > 0; each = at(town.places, each)[0]) if (each === outer) return true;
  return false;
}

/**
 * @param {Recording} town
 * @param {number} place
 */
export const nameOf = (town, place) => (place > 0 ? at(town.places, place)[1] : town.town);

/**
 * @param {Recording} town
 * @param {number} place
 */
export const wordsOf = (town, place) => (place > 0 ? around(town, place).reverse().map((each) => nameOf(town, each)).join(", ") : "");

/**
 * The address of a place in files and links: `Oak Cafe:kitchen`.
 * @param {Recording} town
 * @param {number} place
 */
export const addressOf = (town, place) => around(town, place).map((each) => nameOf(town, each)).join(":");

/**
 * The centre of a place on the map.
 * @param {Recording} town
 * @param {number} place
 * @returns {Point}
 */
export function middleOf(town, place) {
  let middle = town.middles.get(place);
  if (!middle) town.middles.set(place, middle = findMiddle(town, place));
  return middle;
}

/**
 * @param {Recording} town
 * @param {number} place
 * @returns {Point}
 */
function findMiddle(town, place) {
  let [x, y, count] = [0, 0, 0];
  town.cells?.forEach((cell, i) => {
    if (!isIn(town, cell, place)) return;
    [x, y, count] = [x + (i % town.size[0]) + 0.5, y + Math.floor(i / town.size[0]) + 0.5, count + 1];
  });
  for (const [number, left, top, wide, high] of town.boxes ?? []) {
    if (isIn(town, number, place) || isIn(town, place, number)) [x, y, count] = [x + left + wide / 2, y + top + high / 2, count + 1];
  }
  return count ? [x / count, y / count] : [town.size[0] / 2, town.size[1] / 2];
}

/**
 * The outline of a place, as path data in tiles.
 * @param {Recording} town
 * @param {number} place
 */
export function outlineOf(town, place) {
  const cells = town.cells;
  if (!cells) {
    const boxes = (town.boxes ?? []).filter(([number]) => isIn(town, number, place));
    return boxes.map(([, x, y, wide, high]) => `M${x} ${y}h${wide}v${high}h${-wide}z`).join("");
  }
  const [wide, high] = town.size;
  /** @type {(x: number, y: number) => boolean} */
  const inside = (x, y) => x >= 0 && y >= 0 && x < wide && y < high && isIn(town, at(cells, y * wide + x), place);
  let path = "";
  for (let y = 0; y < high; y++) {
    for (let x = 0; x < wide; x++) {
      if (!inside(x, y)) continue;
      if (!inside(x, y - 1)) path += `M${x} ${y}h1`;
      if (!inside(x, y + 1)) path += `M${x} ${y + 1}h1`;
      if (!inside(x - 1, y)) path += `M${x} ${y}v1`;
      if (!inside(x + 1, y)) path += `M${x + 1} ${y}v1`;
    }
  }
  return path;
}
