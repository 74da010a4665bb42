/** Find the place or object in the direction of an arrow key. */
import { addressOf, middleOf } from "../../town/places.js";

/** @typedef {import("../../town/types.js").Recording} Recording @typedef {import("../../town/types.js").Point} Point */
/**
 * @typedef {{name: string, step: number, time: string, place: string, where: string, spot: [number, number], doing: string, on_the_way: boolean, talks_with: string,
 *   talk: {by: string, text: string}[], people: {name: string, doing: string, asleep: boolean, known_as: string, distance: number}[],
 *   things: {address: string, name: string, condition: string, distance: number}[], places: {address: string, name: string, open: boolean}[],
 *   happened: {time: string, kind: string, who: string, text: string}[]}} Surroundings
 */

/** @type {Record<string, [number, number]>} */
const WAYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const LEAST = 1.2; // tiles

/** Return the direction of an arrow key; undefined for other keys. @param {string} key */
export const stepThatWay = (key) => ({ ArrowRight: "right", ArrowLeft: "left", ArrowDown: "down", ArrowUp: "up" }[key]);

/** Return the address of the nearest place or object in a direction; "": none. @param {Recording} town @param {Surroundings} now @param {string} key */
export function nearestThatWay(town, now, key) {
  const way = WAYS[key];
  if (!way) return "";
  const numbers = new Map(town.places.map((_, number) => [`${town.places[0]?.[1]}:${addressOf(town, number)}`, number]));
  const addresses = [...now.things.map((each) => each.address), ...now.places.filter((each) => each.open).map((each) => each.address)];
  let [found, least] = ["", Infinity];
  for (const address of addresses) {
    const number = numbers.get(address);
    if (number === undefined || address === now.place) continue;
    const [x, y] = middleOf(town, number), [dx, dy] = [x - now.spot[0] - 0.5, y - now.spot[1] - 0.5];
    const along = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1] + dy * way[0]);
    if (along < LEAST || aside > along) continue;
    const far = along + aside;
    if (far < least) [found, least] = [address, far];
  }
  return found;
}
