// The residents on the map at a moment: as they were, or as one resident perceived them.

import { actAt, canSee, entryAt, isWalking, lastNoticed, spotAt, textOf, WHYS } from "./moment.js";
import { pointOf } from "./places.js";

/** @import { Act, Person, Point, Recording } from "./types.js" */

/**
 * @typedef {object} Part  a resident or visitor at a step
 * @property {Person} person
 * @property {Point | null} from  where it is at the step; null: not known, or not in the town
 * @property {Point | null} to  where it is at the next step
 * @property {"" | "remembered" | "unknown"} how
 * @property {Act | null} act
 * @property {boolean} walking
 * @property {boolean} asleep
 * @property {string} why
 * @property {string} doing
 * @property {number} seen  the step at which it was noticed
 */

export class Cast {
  /** @param {Recording} town */
  constructor(town) {
    this.town = town;
    this.key = "";
    /** @type {Part[]} */
    this.parts = [];
  }

  /**
   * All residents at a step.
   * @param {number} step
   * @param {Person | null} viewer
   */
  at(step, viewer) {
    const key = `${step} ${viewer ? viewer.number : ""} ${this.town.last}`;
    if (key === this.key) return this.parts;
    this.key = key;
    const noticed = viewer && lastNoticed(this.town, viewer, step);
    this.parts = this.town.people.map((person) => {
      if (!viewer || !noticed || person === viewer || canSee(this.town, viewer, spotAt(this.town, person, step), step)) return this.present(person, step);
      const found = noticed.get(person.number);
      if (!found) return { ...this.present(person, step), from: null, to: null, how: "unknown", doing: "" };
      const point = pointOf(this.town, spotAt(this.town, person, found.step));
      return { ...this.present(person, step), from: point, to: point, how: "remembered", walking: false, asleep: false, why: "", doing: found.what, seen: found.step };
    });
    return this.parts;
  }

  /**
   * @param {Person} person
   * @param {number} step
   * @returns {Part}
   */
  present(person, step) {
    const town = this.town, act = actAt(person, step);
    const away = person.visits === true && !textOf(town, entryAt(person.lived, step)?.[1] ?? -1);
    if (away) return { person, how: "unknown", act: null, seen: step, from: null, to: null, walking: false, asleep: false, why: "", doing: "" };
    return {
      person, how: "", act, seen: step,
      from: pointOf(town, spotAt(town, person, step)),
      to: pointOf(town, spotAt(town, person, Math.min(step + 1, town.last))),
      walking: isWalking(town, act, step), asleep: act !== null && act[6] === 1,
      why: act ? WHYS[act[4]] ?? "" : "", doing: act ? textOf(town, act[2]) : "",
    };
  }
}

/**
 * The position of a resident between two steps.
 * @param {Part} part
 * @param {number} share  of the step that has passed
 * @returns {Point | null}
 */
export function between({ from, to }, share) {
  return from && to && [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
}
