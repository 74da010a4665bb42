// Marks on the ground at a step: the chosen place, the chosen resident's path and sight, objects that are not in order.

import { at } from "./lists.js";
import { actAt, canSee, isWalking, oddThings, spotAt } from "./moment.js";
import { middleOf, outlineOf, pointOf } from "./places.js";
import { lengthOf, spotOn, walkOf } from "./walks.js";

/** @import { Person, Point, Recording } from "./types.js" */

const FAR = "M-500-500h9999v9999h-9999z";

/** @typedef {{chosen: Path2D | null, way: Path2D | null, fog: Path2D | null, odd: Point[]}} Overlay */

/**
 * @param {Recording} town
 * @param {number} step
 * @param {{who: number | null, place: number, own: boolean}} chosen
 * @returns {Overlay}
 */
export function overlayAt(town, step, { who, place, own }) {
  const person = who === null ? null : at(town.people, who), viewer = own ? person : null;
  return {
    chosen: place ? new Path2D(outlineOf(town, place)) : null,
    way: person && wayOf(town, person, step),
    fog: viewer && new Path2D(fogOf(town, viewer, step)),
    odd: oddThings(town, step, viewer).map((each) => middleOf(town, each)),
  };
}

/**
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 */
function wayOf(town, person, step) {
  const act = actAt(person, step);
  if (!act || !isWalking(town, act, step)) return null;
  const walk = walkOf(town, act[7]), path = new Path2D();
  for (let i = step - act[0]; i <= lengthOf(walk); i++) path.lineTo(...pointOf(town, spotOn(walk, i)));
  return path;
}

/**
 * The area of the map that a resident does not see.
 * @param {Recording} town
 * @param {Person} person
 * @param {number} step
 */
function fogOf(town, person, step) {
  const [x, y] = spotAt(town, person, step);
  let seen = "";
  if (town.cells) {
    for (let j = Math.max(0, y - town.vision); j <= Math.min(town.size[1] - 1, y + town.vision); j++) {
      for (let i = Math.max(0, x - town.vision); i <= Math.min(town.size[0] - 1, x + town.vision); i++) {
        if (canSee(town, person, [i, j], step)) seen += `M${i} ${j}v1h1v-1z`;
      }
    }
  } else if (y === 0 && canSee(town, person, [x, y], step)) {
    const [, left, top, wide, high] = at(town.boxes ?? [], x);
    seen = `M${left} ${top}v${high}h${wide}v${-high}z`;
  }
  return FAR + seen;
}
