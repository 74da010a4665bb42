// A resident's conversations.

import { make } from "../elements.js";
import { lastAt } from "../moment.js";
import { growing, linesOf, personLink, timeLink } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Person, Talk, View } from "../types.js" */

/**
 * @param {Player} player
 * @param {Person} person
 * @returns {View}
 */
export function talksView(player, person) {
  let key = -2;
  const list = growing((/** @type {Talk} */ [step, other, , lines]) => (
    make("li", {}, make("p", { class: "headline" }, "with ", personLink(player, other), " ", timeLink(player, step)), linesOf(player, lines))
  ), "No talks yet.");
  return {
    node: list.node,
    update(step) {
      const upTo = lastAt(person.talks, step);
      if (key === (key = upTo)) return;
      list.show(person.talks.slice(0, upTo + 1).reverse());
    },
  };
}
