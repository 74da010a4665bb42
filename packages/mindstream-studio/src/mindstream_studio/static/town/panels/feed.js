// The list of events in the town.

import { icon, make, said } from "../elements.js";
import { countUntil } from "../links.js";
import { textOf } from "../moment.js";
import { growing, linesOf, personLink, placeLink, timeLink } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Happening, View } from "../types.js" */

const KINDS = /** @type {const} */ ({ talk: "Talks", reaction: "Reactions", reflection: "Thoughts", thing: "Things" });

/**
 * @param {Player} player
 * @returns {View}
 */
export function feedView(player) {
  const shown = new Set(Object.keys(KINDS)), list = growing((/** @type {Happening} */ each) => entry(player, each), "Nothing of these kinds has happened yet.");
  let key = "";
  /** @type {View} */
  const view = {
    node: make("div", {}, filters(shown, () => { key = ""; view.update(player.step); }), list.node),
    update(step) {
      const until = countUntil(player.town, step);
      if (key === (key = `${until} ${player.town.last}`)) return;
      list.show(player.town.feed.slice(0, until).filter((each) => shown.has(each.kind)).reverse());
    },
  };
  return view;
}

/**
 * @param {Set<string>} shown
 * @param {() => void} change
 */
function filters(shown, change) {
  const kinds = /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS));
  return make("div", { class: "filters", role: "group", "aria-label": "What to show" }, kinds.map((kind) => {
    const button = make("button", { type: "button", "aria-pressed": "true", onclick: () => {
      if (!shown.delete(kind)) shown.add(kind);
      button.ariaPressed = String(shown.has(kind));
      change();
    } }, icon(kind), KINDS[kind]);
    return button;
  }));
}

/**
 * @param {Player} player
 * @param {Happening} happening
 */
function entry(player, happening) {
  const [first, other] = happening.who;
  const subject = happening.kind === "talk" ? [personLink(player, first ?? -1), " and ", personLink(player, other ?? -1), " talk"]
    : [first === undefined ? "An observer" : personLink(player, first)];
  return make("li", { class: `happening ${happening.kind}` }, icon(happening.kind),
    make("div", {}, make("p", { class: "headline" }, ...subject, " ", timeLink(player, happening.step)), bodyOf(player, happening)));
}

/**
 * @param {Player} player
 * @param {Happening} happening
 */
function bodyOf(player, { kind, text, because, more, lines, place }) {
  switch (kind) {
    case "talk":
      return make("details", {}, make("summary", {}, said(textOf(player.town, lines[0]?.[1] ?? -1))), linesOf(player, lines));
    case "reaction":
      return make("p", {}, because ? said(because) : null, because ? " → " : null, said(text));
    case "reflection":
      return more.length ? make("details", {}, make("summary", {}, said(text), ` and ${more.length} more`), make("ul", {}, more.map((each) => make("li", {}, said(each)))))
        : make("p", {}, said(text));
    default:
      return make("p", {}, said(text), place > 0 ? make("small", {}, " ", placeLink(player, place)) : null);
  }
}
