// The list of places; one place with the residents and objects there.

import { at } from "../lists.js";
import { make, said } from "../elements.js";
import { actAt, conditionOf, isWalking, lastAt, spotAt } from "../moment.js";
import { around, isIn, nameOf, placeAt } from "../places.js";
import { row } from "./people.js";
import { chip, link, placeLink, titled } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Recording, View } from "../types.js" */

const CHIPS = 8;

/**
 * @param {Recording} town
 * @param {number} place
 * @param {number} step
 */
const whoIsIn = (town, place, step) => town.people.filter((person) => isIn(town, placeAt(town, spotAt(town, person, step)), place));

/**
 * @param {Player} player
 * @returns {View}
 */
export function placesView(player) {
  const { town } = player, list = make("ul", { class: "places" });
  const sectors = town.places.map((_, number) => number).filter((number) => at(town.places, number)[0] === 0);
  let key = "";
  return {
    node: list,
    update(step) {
      const counts = sectors.map((place) => whoIsIn(town, place, step));
      if (key === (key = counts.map((each) => each.map((person) => person.number).join(".")).join("|"))) return;
      list.replaceChildren(...sectors.map((place, i) => {
        const there = at(counts, i), more = there.length > CHIPS ? `+${there.length - CHIPS}` : null;
        return make("li", {}, make("button", { type: "button", class: "place", onclick: () => player.choose({ place }) },
          make("b", {}, said(nameOf(town, place))), make("span", { class: "chips" }, there.slice(0, CHIPS).map(chip), more)));
      }));
    },
  };
}

/**
 * @param {Player} player
 * @param {number} place
 * @returns {View}
 */
export function placeView(player, place) {
  const { town } = player, here = make("ul", { class: "people" }), things = make("ul", { class: "things" });
  const outer = around(town, place), isThing = outer.length >= 3;
  const inside = at(town.children, place).map((child) => make("li", {}, link(player, "name", { place: child }, () => player.choose({ place: child }), said(nameOf(town, child)))));
  const under = outer.length > 1 ? make("p", { class: "soft" }, "in ", placeLink(player, at(town.places, place)[0])) : null;
  /** @type {(each: number) => number[]} */
  const thingsOf = (each) => (around(town, each).length >= 3 ? [each] : at(town.children, each).flatMap(thingsOf));
  const extra = player.extra("place", place);
  let key = "";
  return {
    node: make("div", {}, titled(player, [], said(nameOf(town, place)), under), make("h3", {}, isThing ? "At it now" : "Here now"), here,
      make("h3", {}, "Condition"), things, inside.length ? make("h3", {}, outer.length === 1 ? "Rooms" : "In it") : null,
      inside.length ? make("ul", { class: "inside" }, inside) : null, extra?.node),
    close: () => extra?.close?.(),
    update(step) {
      const present = isThing
        ? town.people.filter((person) => { const act = actAt(person, step); return act?.[3] === place && !isWalking(town, act, step); })
        : whoIsIn(town, place, step);
      const odd = thingsOf(place).map((thing) => ({ thing, how: conditionOf(town, thing, step) })).filter(({ how }) => how);
      if (key === (key = JSON.stringify([present.map((person) => [person.number, lastAt(person.acts, step)]), odd]))) return;
      here.replaceChildren(...(present.length ? present.map((person) => row(player, person, step)) : [make("li", { class: "nothing" }, "No one is here.")]));
      things.replaceChildren(...(odd.length ? odd.map(({ thing, how }) => make("li", {}, make("b", {}, said(nameOf(town, thing))), ": ", said(how)))
        : [make("li", { class: "nothing" }, "All objects are in order.")]));
    },
  };
}
