// The list of residents with their current activities.

import { make, said } from "../elements.js";
import { actAt, isWalking, lastAt, textOf } from "../moment.js";
import { arenaOf, nameOf } from "../places.js";
import { chip } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Person, View } from "../types.js" */

/**
 * @param {Player} player
 * @param {Person} person
 * @param {number} step
 */
export function row(player, person, step) {
  const { town } = player, act = actAt(person, step), place = act && act[3] > 0 ? arenaOf(town, act[3]) : 0;
  return make("li", {}, make("button", { type: "button", class: "person", onclick: () => player.choose({ who: person.number }) }, chip(person),
    make("span", {}, make("b", {}, said(person.name)), make("small", {}, said(act ? textOf(town, act[2]) : "not here yet"),
      place ? (isWalking(town, act, step) ? " · on the way to " : " · ") : null, place ? said(nameOf(town, place)) : null))));
}

/**
 * @param {Player} player
 * @returns {View}
 */
export function peopleView(player) {
  const list = make("ul", { class: "people" });
  const search = make("input", { type: "search", placeholder: "Find a resident", "aria-label": "Find a resident", oninput: () => view.update(player.step) });
  let key = "";
  /** @type {View} */
  const view = {
    node: make("div", {}, search, list),
    update(step) {
      const { town } = player, wanted = search.value.trim().toLowerCase();
      /** @type {(person: Person) => string} */
      const doing = (person) => textOf(town, actAt(person, step)?.[2] ?? -1);
      const found = wanted ? town.people.filter((person) => `${person.name} ${doing(person)}`.toLowerCase().includes(wanted)) : town.people;
      const shown = found.slice(0, 200);
      if (key === (key = wanted + shown.map((person) => `${person.number}.${lastAt(person.acts, step)}.${isWalking(town, actAt(person, step), step)}`).join())) return;
      list.replaceChildren(...shown.map((person) => row(player, person, step)));
      if (shown.length < found.length) list.append(make("li", { class: "nothing" }, `And ${found.length - shown.length} more: search by name or by what they do.`));
    },
  };
  return view;
}
