// Small elements for all panels: links to residents, times and places; lines of a talk; lists that grow.

import { at } from "../lists.js";
import { iconButton, make, said } from "../elements.js";
import { textOf } from "../moment.js";
import { wordsOf } from "../places.js";
import { momentOf } from "../times.js";

/** @import { Child } from "../elements.js" */
/** @import { Target } from "../links.js" */
/** @import { Player } from "../player.js" */
/** @import { Person } from "../types.js" */

const SHOWN = 60; // entries of a list; more on demand

/**
 * A list that shows its first entries; `draw` makes one.
 * @template T
 * @param {(entry: T) => HTMLElement} draw
 * @param {string} nothing
 */
export function growing(draw, nothing) {
  const list = make("ol", { class: "list" });
  const more = make("button", { type: "button", class: "more", onclick: () => { most += SHOWN; render(); } }, "Show more");
  let most = SHOWN;
  /** @type {T[]} */
  let all = [];
  const render = () => {
    list.replaceChildren(...all.slice(0, most).map(draw));
    more.hidden = all.length <= most;
    if (!all.length) list.append(make("li", { class: "nothing" }, nothing));
  };
  return { node: make("div", {}, list, more), show(/** @type {T[]} */ found) { all = found; render(); }, reset() { most = SHOWN; } };
}

/** @param {Person} person */
export const chip = (person) => make("span", { class: "chip", hue: person.hue, "aria-hidden": "true" }, said(person.initials));

/**
 * A link to another view of this page; it flows with the text around it, as a button does not.
 * @param {Player} player
 * @param {string} className
 * @param {Target} target
 * @param {() => void} go
 * @param {...Child} children
 */
export const link = (player, className, target, go, ...children) => make("a", {
  class: className, href: player.hrefOf(target),
  onclick: (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go();
  },
}, ...children);

/**
 * @param {Player} player
 * @param {number} number
 */
export const personLink = (player, number) => (number < 0 ? make("span", {}, "an unknown person")
  : link(player, "name", { who: number }, () => player.choose({ who: number }), said(at(player.town.people, number).name)));

/**
 * @param {Player} player
 * @param {number} step
 */
export const timeLink = (player, step) => link(player, "time", { t: step }, () => player.seek(step), momentOf(player.town, step));

/**
 * @param {Player} player
 * @param {number} place
 */
export const placeLink = (player, place) => link(player, "name", { place }, () => player.choose({ place }), said(wordsOf(player.town, place)));

/**
 * @param {Player} player
 * @param {[number, number][]} lines
 */
export const linesOf = ({ town }, lines) => make("ol", { class: "lines" }, lines.map(([by, text]) => {
  const speaker = town.people[by];
  return make("li", { hue: speaker?.hue ?? 0 }, make("b", {}, said(speaker?.name.split(" ")[0] ?? "unknown")), " ", said(textOf(town, text)));
}));

/**
 * The head of a panel, with the way back.
 * @param {Player} player
 * @param {Child[]} before
 * @param {Child} name
 * @param {Child} under
 */
export const titled = (player, before, name, under) => make("div", { class: "title" }, ...before,
  make("div", {}, make("h2", { tabindex: "-1" }, name), under), iconButton("back", "Back to the town", () => player.choose({}), "Esc"));
