// All events worth a line in the feed, in order. A talk is stored for both residents, and listed once.

import { at } from "./lists.js";
import { WHYS } from "./moment.js";

/** @import { Happening, Person, Recording } from "./types.js" */

const NOTHING = { text: "", because: "", more: [], lines: [], place: -1 };

/**
 * @param {Recording} town
 * @returns {Happening[]}
 */
export function happenings(town) {
  const feed = town.people.flatMap((person) => [...talks(person), ...reactions(town, person), ...reflections(town, person)]);
  return [...feed, ...changes(town)].sort((a, b) => a.step - b.step || (a.who[0] ?? -1) - (b.who[0] ?? -1));
}

/**
 * @param {Person} person
 * @returns {Happening[]}
 */
function talks(person) {
  const told = person.talks.filter(([, other, , lines]) => other < 0 || !lines.length || lines[0]?.[0] === person.number);
  return told.map(([step, other, , lines]) => ({ ...NOTHING, step, kind: "talk", who: [person.number, other], lines }));
}

/**
 * @param {Recording} town
 * @param {Person} person
 * @returns {Happening[]}
 */
function reactions({ texts }, person) {
  const found = person.acts.filter((act) => WHYS[act[4]] === "react");
  return found.map(([step, , what, place, , because]) => ({
    ...NOTHING, step, kind: "reaction", who: [person.number], text: at(texts, what), because: at(texts, because), place,
  }));
}

/**
 * @param {Recording} town
 * @param {Person} person
 * @returns {Happening[]}
 */
function reflections({ texts }, person) {
  const found = person.reflections.map(([step, thoughts]) => ({ step, drawn: thoughts.map((each) => at(texts, at(person.records, each)[2])) }));
  return found.filter(({ drawn }) => drawn.length).map(({ step, drawn: [text = "", ...more] }) => (
    { ...NOTHING, step, kind: "reflection", who: [person.number], text, more }
  ));
}

/**
 * @param {Recording} town
 * @returns {Happening[]}
 */
function changes({ things, texts, places }) {
  return things.map(([step, place, condition, by]) => {
    const name = place < 0 ? "something" : at(places, place)[1];
    return { ...NOTHING, step, kind: "thing", who: by < 0 ? [] : [by], place, text: `${name}: ${texts[condition] || "in order"}` };
  });
}
