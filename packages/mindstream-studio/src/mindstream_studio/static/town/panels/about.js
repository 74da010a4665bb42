// A resident's description: identity, present concerns, relations, home.

import { make, said } from "../elements.js";
import { entryAt, knownPlaces, lastAt, textOf } from "../moment.js";
import { personLink, placeLink } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Person, View } from "../types.js" */

/**
 * @param {Player} player
 * @param {Person} person
 * @returns {View}
 */
export function aboutView(player, person) {
  const { town } = player, node = make("div", { class: "about" });
  let key = "";
  return {
    node,
    update(step) {
      const day = entryAt(person.days, step), upTo = lastAt(person.talks, step) + 1;
      if (key === (key = `${lastAt(person.days, step)} ${upTo}`)) return;
      /** @type {[string, string][]} */
      const told = [["Who", person.learned], ["These days", day ? textOf(town, day[1]) : person.currently], ["Habits", person.lifestyle], ["Routine", person.routine]];
      node.replaceChildren(
        ...told.filter(([, text]) => text).flatMap(([name, text]) => [make("h3", {}, name), make("p", {}, said(text))]),
        ...listed("The day in broad strokes", (day?.[2] ?? []).map((each) => said(textOf(town, each)))),
        ...listed("Knows", person.relations.map(([who, name, what]) => make("span", {}, who >= 0 ? personLink(player, who) : said(name), ", ", said(what)))),
        ...listed("Has talked with", partners(player, person, upTo)),
        ...listed("Lives at", person.lives > 0 ? [placeLink(player, person.lives)] : []),
        make("p", { class: "soft" }, `Number of known places: ${knownPlaces(town, person, step).size - 1}.`),
      );
    },
  };
}

/**
 * @param {string} title
 * @param {HTMLElement[]} entries
 */
const listed = (title, entries) => (entries.length ? [make("h3", {}, title), make("ul", { class: "plain" }, entries.map((each) => make("li", {}, each)))] : []);

/**
 * @param {Player} player
 * @param {Person} person
 * @param {number} upTo
 */
function partners(player, person, upTo) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const [, other] of person.talks.slice(0, upTo)) counts.set(other, (counts.get(other) ?? 0) + 1);
  const most = [...counts].filter(([other]) => other >= 0).sort((a, b) => b[1] - a[1]);
  return most.map(([other, count]) => make("span", {}, personLink(player, other), count > 1 ? ` ${count} times` : " once"));
}
