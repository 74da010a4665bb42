// A step in words: the town's own clock.

/** @import { Recording } from "./types.js" */

const UTC = { timeZone: "UTC" };
const DAY = new Intl.DateTimeFormat("en-GB", { ...UTC, weekday: "long", day: "numeric", month: "long" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { ...UTC, weekday: "short" });

/** @param {number} number */
const two = (number) => String(number).padStart(2, "0");

/** @param {number} minute  of a day */
export const clockOf = (minute) => `${two(Math.floor(minute / 60) % 24)}:${two(minute % 60)}`;

/**
 * @param {Recording} town
 * @param {number} step
 */
export const minuteOf = (town, step) => Math.floor((((town.start + step * town.seconds) / 60) % 1440 + 1440) % 1440);

/**
 * @param {Recording} town
 * @param {number} step
 */
export const whenOf = (town, step) => new Date((town.start + step * town.seconds) * 1000);

/**
 * @param {Recording} town
 * @param {number} step
 */
export const timeOf = (town, step) => clockOf(minuteOf(town, step));

/**
 * @param {Recording} town
 * @param {number} step
 */
export const dayOf = (town, step) => DAY.format(whenOf(town, step));

/**
 * @param {Recording} town
 * @param {number} step
 */
export const shortDayOf = (town, step) => SHORT_DAY.format(whenOf(town, step));

/**
 * @param {Recording} town
 * @param {number} step
 */
export const momentOf = (town, step) => `${shortDayOf(town, step)} ${timeOf(town, step)}`;

/**
 * The time of a step, with the weekday if `now` is on another day.
 * @param {Recording} town
 * @param {number} step
 * @param {number} now
 */
export const timeSeenFrom = (town, step, now) => (dayOf(town, step) === dayOf(town, now) ? timeOf(town, step) : momentOf(town, step));
