/** Rows of the log, and how long something took, in words. */
import { lasting, millis, whole } from "../../format.js";

/** @typedef {import("./shapes.js").Row} Row */

/** Names of the shipped reasoners by the slot that each writes to; any other slot belongs to the reasoner that answers are based on. @type {Record<string, string>} */
const REASONERS = { facts: "the fact reasoner", reflect: "the reflection reasoner", night: "the sleep reasoner" };

/** Return the name of a slot's reasoner. @param {string} slot */
export const reasonerOf = (slot) => REASONERS[slot] ?? "the reasoner";

/** @type {Record<string, (row: Row) => string>} */
const WORDS = {
  heard: () => "something was said",
  waiting: () => "the talker waits",
  said: () => "it was answered",
  follow_up: () => "a follow-up was said",
  left_unsaid: () => "a follow-up was not sent",
  thought: ({ slot }) => `a thought of ${reasonerOf(slot)}`,
  set_aside: ({ slot }) => `${reasonerOf(slot)} gave up`,
  believed: ({ slot }) => `${reasonerOf(slot)} noted something`,
  belief_changed: ({ version }) => `belief, version ${version}`,
  plan_made: ({ version }) => `plan, version ${version}`,
  tool_called: ({ tool }) => `${tool} was called`,
  observed: ({ tool }) => `${tool} gave a result`,
  model_called: ({ role }) => `a model answered the ${role}`,
  decided: ({ waits }) => (waits ? "decided: it waits" : "decided: it does not wait"),
  judged: () => "judged whether the thought was needed",
  alarmed: ({ alarm }) => `an alarm: ${alarm}`,
  error: () => "something failed",
};

/** @param {Row} row */
export const inWords = (row) => WORDS[row.event]?.(row) ?? row.event;

/** Format a duration: in milliseconds below ten seconds. @param {number} seconds */
export function took(seconds) {
  if (seconds < 10) return millis(Math.max(0, seconds * 1000));
  return seconds < 120 ? `${whole(seconds)} seconds` : lasting(seconds);
}

/** Return a value of a belief as text. @param {unknown} value */
export function plain(value) {
  if (typeof value === "string") return value;
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {string} name */
export const spaced = (name) => name.replaceAll("_", " ");

/** @param {string} text @param {number} most */
export const clipped = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);
