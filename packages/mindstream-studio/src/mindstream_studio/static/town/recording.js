// The recording: its timelines with whole steps, its happenings.

import { at } from "./lists.js";
import { happenings } from "./happenings.js";

/** @import { Person, Recording } from "./types.js" */

/** @type {readonly ["acts", "days", "plans", "seen", "decisions", "talks", "reflections", "places", "records", "lived"]} */
export const TIMELINES = ["acts", "days", "plans", "seen", "decisions", "talks", "reflections", "places", "records", "lived"];

/** @param {any[][]} timeline */
function addUp(timeline) {
  let step = 0;
  for (const entry of timeline) entry[0] = step += entry[0];
}

/**
 * Convert the JSON of a recording into the form that the player uses, in place.
 * @param {any} raw
 * @returns {Recording}
 */
export function prepare(raw) {
  /** @type {Recording} */
  const town = raw;
  addUp(town.things);
  town.people.forEach((person, number) => {
    for (const name of TIMELINES) addUp(person[name] ??= []);
    Object.assign(person, { number, hue: Math.round((number * 137.5) % 360) });
  });
  for (const [person, letters] of initials(town.people)) person.initials = letters;
  town.children = town.places.map(() => []);
  town.places.forEach(([parent], number) => parent >= 0 && at(town.children, parent).push(number));
  town.cells = town.tiles ? unroll(town.tiles, town.size[0] * town.size[1]) : null;
  town.walks = new Map();
  town.middles = new Map();
  town.feed = happenings(town);
  return town;
}

/**
 * @param {number[]} runs  pairs of a number and how often it follows itself
 * @param {number} count
 */
function unroll(runs, count) {
  const cells = new Uint16Array(count);
  for (let i = 0, cell = 0; i < runs.length; i += 2) cells.fill(at(runs, i), cell, cell += at(runs, i + 1));
  return cells;
}

/**
 * Two letters for each resident: the initials of the first and last name, or the first two letters that are unique.
 * @param {Person[]} people
 * @returns {Map<Person, string>}
 */
function initials(people) {
  const words = new Map(people.map((person) => [person, person.name.trim().split(/\s+/).map((word) => [...word])]));
  const found = new Map(people.map((person) => {
    const [first = [], ...others] = words.get(person) ?? [];
    return [person, [first, others.pop() ?? []].map((word) => word[0] ?? "").join("")];
  }));
  /** @type {Map<string, Person[]>} */
  const alike = new Map();
  for (const [person, letters] of found) alike.set(letters, [...alike.get(letters) ?? [], person]);
  for (const same of alike.values()) {
    for (const person of same.length > 1 ? same : []) {
      const first = words.get(person)?.[0] ?? [];
      const differs = first.findIndex((letter, i) => i > 0 && same.every((each) => each === person || words.get(each)?.[0]?.[i] !== letter));
      if (differs > 0) found.set(person, at(first, 0) + at(first, differs));
    }
  }
  return found;
}
