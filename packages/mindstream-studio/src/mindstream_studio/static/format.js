/** Numbers, times and lengths in words, with units. Times are seconds since 1970 UTC. */

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

/** @param {number} at */
export const timeOf = (at) => TIME.format(at * 1000);
/** @param {number} at */
export const dayOf = (at) => DAY.format(at * 1000);
/** @param {number} at */
export const clockOf = (at) => CLOCK.format(at * 1000);
/** @param {number} value */
export const whole = (value) => WHOLE.format(value);
/** @param {number} value 0 to 1 */
export const percent = (value) => `${WHOLE.format(value * 100)} %`;

/** Format a score, or a part of a score. @param {number} value */
export function number(value) {
  if (Number.isInteger(value)) return WHOLE.format(value);
  return Math.abs(value) >= 100 ? WHOLE.format(value) : value.toPrecision(3);
}

/** @type {[number, string][]} */
const UNITS = [[86_400, "day"], [3_600, "hour"], [60, "minute"], [1, "second"]];

/** Format a duration or an age: `3 days`, `0.4 seconds`. @param {number} seconds */
export function lasting(seconds) {
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, "second"];
  const many = seconds < 10 && size === 1 ? Math.round(seconds * 10) / 10 : Math.round(seconds / size);
  return `${many} ${unit}${many === 1 ? "" : "s"}`;
}

/** @param {number} seconds */
export const ago = (seconds) => (seconds < 1 ? "just now" : `${lasting(seconds)} ago`);

/** @param {number} ms */
export const millis = (ms) => `${WHOLE.format(ms)} ms`;
/** @param {number} usd */
export const dollars = (usd) => `$${usd.toFixed(usd >= 0.1 || usd === 0 ? 2 : 4)}`;

/** `1 memory`, `3 memories`. @param {number} many @param {string} one @param {string} [more] */
export const counted = (many, one, more = `${one}s`) => `${whole(many)} ${many === 1 ? one : more}`;

const LIST = new Intl.ListFormat("en", { type: "conjunction" });
/** `Ada, Ben and Cleo`. @param {string[]} names */
export const listed = (names) => LIST.format(names);
