// Convert a moment, a resident or a place into the parameters of a link, and back.

import { at } from "./lists.js";
import { lastAt } from "./moment.js";
import { addressOf } from "./places.js";
import { whenOf } from "./times.js";

/** @import { Recording } from "./types.js" */

/** @typedef {{t?: number | null, who?: number | null, place?: number, own?: boolean}} Target */

/**
 * @param {Recording} town
 * @param {Target} target
 */
export function partsOf(town, { t = null, who = null, place = 0, own = false }) {
  const parts = new URLSearchParams();
  if (t !== null) parts.set("t", whenOf(town, Math.floor(t)).toISOString().slice(0, 19));
  if (who !== null) parts.set("who", at(town.people, who).name);
  if (place) parts.set("place", addressOf(town, place));
  if (own) parts.set("see", "own");
  return parts;
}

/**
 * Read the parameters of an address: `t` (a time of the town, or a step), `who`, `place`, `see=own`; `lost`: names that this recording lacks.
 * @param {Recording} town
 * @param {URLSearchParams} parts
 */
export function readParts(town, parts) {
  const t = parts.get("t"), who = town.people.findIndex((person) => person.name === parts.get("who"));
  const place = parts.get("place") ? town.places.findIndex((_, number) => number > 0 && addressOf(town, number) === parts.get("place")) : -1;
  const step = t === null ? NaN : stepOf(town, t);
  const lost = [t !== null && !Number.isFinite(step) && "moment", parts.get("who") !== null && who < 0 && "person", parts.get("place") !== null && place < 0 && "place"];
  return {
    t: Number.isFinite(step) ? Math.max(town.first, Math.min(town.last, step)) : null,
    who: who >= 0 ? who : null, place: who < 0 && place > 0 ? place : 0, own: parts.get("see") === "own" && who >= 0,
    lost: lost.filter((each) => typeof each === "string"),
  };
}

/**
 * @param {Recording} town
 * @param {string} t
 */
function stepOf(town, t) {
  if (/^\d{1,9}$/.test(t)) return Number(t);
  return (Date.parse(t.endsWith("Z") ? t : `${t}Z`) / 1000 - town.start) / town.seconds;
}

/**
 * The step to start with: shortly before the first resident gets up, if most residents are asleep at first.
 * @param {Recording} town
 */
export function firstMorning({ people, first, last }) {
  const sleepers = people.filter((person) => person.acts[0]?.[6]);
  const ups = sleepers.flatMap((person) => person.acts.filter((act) => !act[6]).slice(0, 1).map((act) => act[0]));
  return sleepers.length * 2 < people.length ? first : Math.max(first, Math.min(last, ...ups.map((step) => step - 30)));
}

/**
 * The event before or after a step.
 * @param {Recording} town
 * @param {number} step
 * @param {1 | -1} way
 * @param {number | null} who  only events of this resident; null: of all
 */
export function nextHappening({ feed }, step, way, who) {
  const own = feed.filter((each) => who === null || each.who.includes(who));
  return way > 0 ? own.find((each) => each.step > step) : own.findLast((each) => each.step < step);
}

/**
 * The number of events up to a step.
 * @param {Recording} town
 * @param {number} step
 */
export const countUntil = ({ feed }, step) => lastAt(/** @type {any} */ (feedSteps(feed)), step) + 1;

/** @type {WeakMap<object, [number][]>} */
const steps = new WeakMap();

/** @param {{step: number}[]} feed */
function feedSteps(feed) {
  let known = steps.get(feed);
  if (!known) steps.set(feed, known = feed.map((each) => [each.step]));
  return known;
}
