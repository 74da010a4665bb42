// Add new entries to a growing recording.

import { happenings } from "./happenings.js";
import { TIMELINES } from "./recording.js";

/** @import { Recording } from "./types.js" */

/**
 * Append new entries to a recording in place. The step of each entry is relative to the entry before.
 * @param {Recording} town
 * @param {any} part  `last`, and the new entries of people, things, texts, blocks
 */
export function extend(town, part) {
  town.texts.push(...part.texts);
  town.blocks.push(...part.blocks);
  append(town.things, part.things);
  const byName = new Map(town.people.map((person) => [person.name, person]));
  for (const more of part.people) {
    const person = byName.get(more.name);
    if (person) for (const name of TIMELINES) append(person[name], more[name] ?? []);
  }
  town.last = part.last;
  town.feed = happenings(town);
}

/**
 * @param {any[][]} timeline
 * @param {any[][]} more
 */
function append(timeline, more) {
  let step = timeline.at(-1)?.[0] ?? 0;
  for (const [passed, ...entry] of more) timeline.push([step += passed, ...entry]);
}
