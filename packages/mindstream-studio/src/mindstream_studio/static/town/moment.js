// Look up the state at a step: a resident's position, act, plan and sight. Nothing is computed here.

import { at } from "./lists.js";
import { arenaOf, around, placeAt } from "./places.js";
import { lengthOf, spotOn, walkOf } from "./walks.js";

/** @import { Act, Person, Recording, Spot, Talk } from "./types.js" */

export const WHYS = ["", "plan", "talk", "wait", "react"];

/**
 * The index of the last entry that is valid at a step; -1: there is none.
 * @param {[number, ...any][]} timeline
 * @param {number} step
 */
export function lastAt(timeline, step) {
  let low = 0, high = timeline.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(timeline, middle)[0] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * @template {[number, ...any]} T
 * @param {T[]} timeline
 * @param {number} step
 * @returns {T | null}
 */
export const entryAt = (timeline, step) => timeline[lastAt(timeline, step)] ?? null;

/**
 * @param {Recording} town
 * @param {number} number
 */
export const textOf = (town, number) => town.texts[number] ?? "";

/**
 * @param {Person} person
 * @param {number} step
 */
export const actAt = (person, step) => entryAt(person.acts, step);

/**
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 * @returns {Spot}
 */
export function spotAt(town, person, step) {
  const act = actAt(person, step);
  return act ? spotOn(walkOf(town, act[7]), step - act[0]) : person.home;
}

/**
 * @param {Recording} town
 * @param {Act | null} act
 * @param {number} step
 */
export const isWalking = (town, act, step) => act !== null && step - act[0] < lengthOf(walkOf(town, act[7]));

/**
 * The condition of an object in words; "": in order.
 * @param {Recording} town
 * @param {number} place
 * @param {number} step
 */
export function conditionOf(town, place, step) {
  for (let i = lastAt(town.things, step); i >= 0; i--) if (at(town.things, i)[1] === place) return textOf(town, at(town.things, i)[2]);
  return "";
}

/**
 * The day's plan; times are in minutes.
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 */
export function planAt(town, person, step) {
  const entry = entryAt(person.plans, step);
  return (entry ? entry[1] : []).map((number) => at(town.blocks, number)).map(([start, minutes, what, place, asleep]) => (
    { start, end: start + minutes, what: textOf(town, what), place, asleep }
  ));
}

/**
 * Whether a resident is awake and sees a spot: in the same arena within its vision; without tiles, at the same place.
 * @param {Recording} town
 * @param {Person} person
 * @param {Spot} spot
 * @param {number} step
 */
export function canSee(town, person, spot, step) {
  const act = actAt(person, step);
  if (act && act[6]) return false;
  const here = spotAt(town, person, step);
  if (!town.cells) return here[1] === spot[1] && (here[1] === 0 ? here[0] === spot[0] : Math.abs(here[0] - spot[0]) <= town.vision);
  const far = Math.max(Math.abs(here[0] - spot[0]), Math.abs(here[1] - spot[1]));
  return far <= town.vision && arenaOf(town, placeAt(town, here)) === arenaOf(town, placeAt(town, spot));
}

/**
 * For each other resident that a resident has noticed: the step at which it last did, and what it saw the other do.
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 */
export function lastNoticed(town, person, step) {
  /** @type {Map<number, {step: number, what: string}>} */
  const noticed = new Map();
  for (let i = lastAt(person.seen, step); i >= 0; i--) {
    const [seen, who, , what] = at(person.seen, i);
    if (who >= 0 && !noticed.has(who)) noticed.set(who, { step: seen, what: textOf(town, what) });
  }
  return noticed;
}

/**
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 */
export function knownPlaces(town, person, step) {
  const known = new Set([0]);
  for (const [since, places] of person.places) if (since <= step) places.forEach((place) => around(town, place).forEach((each) => known.add(each)));
  return known;
}

/**
 * The talk that a resident is in.
 * @param {Person} person
 * @param {number} step
 * @returns {Talk | null}
 */
export function talkAt(person, step) {
  const talk = entryAt(person.talks, step);
  return talk && step < talk[0] + Math.max(1, talk[2]) ? talk : null;
}

/**
 * The line of a talk that is shown at a moment; all lines have the same duration.
 * @param {Talk} talk
 * @param {number} t
 */
export const lineAt = ([start, , length, lines], t) => lines[Math.max(0, Math.min(lines.length - 1, Math.floor(((t - start) / Math.max(1, length)) * lines.length)))] ?? null;

/**
 * The objects that are not in order; for a viewer, only those that it has noticed.
 * @param {Recording} town
 * @param {number} step
 * @param {Person | null} viewer
 */
export function oddThings(town, step, viewer) {
  /** @type {Map<number, string>} */
  const now = new Map();
  for (const [since, place, condition] of town.things) {
    if (since > step) break;
    if (place > 0) now.set(place, textOf(town, condition));
  }
  const noticed = new Set(viewer ? viewer.seen.filter(([since, who]) => since <= step && who < 0).map((entry) => entry[2]) : []);
  return [...now].filter(([place, condition]) => condition && (!viewer || noticed.has(place))).map(([place]) => place);
}
