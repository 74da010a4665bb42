// A resident's memories: search, filter by kind, sort by time or importance.

import { at } from "../lists.js";
import { make, said } from "../elements.js";
import { lastAt, textOf } from "../moment.js";
import { growing, timeLink } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Memory, Person, View } from "../types.js" */

/** @type {Record<string, string>} */
const KINDS = { "": "All", observation: "Seen", chat: "Said", thought: "Thoughts", note: "Notes" };

/**
 * @param {Player} player
 * @param {Person} person
 * @returns {View}
 */
export function memoryView(player, person) {
  const { town } = player, count = make("p", { class: "soft", role: "status" });
  const list = growing((/** @type {Memory} */ each) => entry(player, each), "No matching memories.");
  let kind = "", key = "";
  const change = () => { list.reset(); view.update(player.step); };
  const search = make("input", { type: "search", placeholder: "Search what it remembers", "aria-label": "Search memories", oninput: change });
  const sort = make("select", { "aria-label": "Order", onchange: change }, make("option", { value: "newest" }, "Newest"), make("option", { value: "weight" }, "Most important"));
  const kinds = filters((name) => { kind = name; change(); });
  /** @type {View} */
  const view = {
    node: make("div", {}, make("div", { class: "row" }, search, sort), kinds, count, list.node),
    update(step) {
      const upTo = lastAt(person.records, step) + 1, wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      if (key === (key = JSON.stringify([upTo, wanted, kind, sort.value]))) return;
      const found = person.records.slice(0, upTo).reverse().filter((each) => (!kind || each[1] === kind)
        && wanted.every((word) => textOf(town, each[2]).toLowerCase().includes(word)));
      if (sort.value === "weight") found.sort((a, b) => b[3] - a[3]);
      count.textContent = `${found.length} of ${upTo} memories`;
      list.show(found);
    },
  };
  return view;
}

/** @param {(kind: string) => void} change */
function filters(change) {
  const buttons = Object.entries(KINDS).map(([name, label]) => make("button", {
    type: "button", "aria-pressed": String(!name),
    onclick: (/** @type {MouseEvent} */ event) => {
      for (const button of buttons) button.ariaPressed = String(button === event.currentTarget);
      change(name);
    },
  }, label));
  return make("div", { class: "filters", role: "group", "aria-label": "Kind of memory" }, buttons);
}

/**
 * @param {Player} player
 * @param {Memory} memory
 */
const entry = (player, [step, kind, text, importance, by]) => make("li", { class: `memory ${kind}` },
  make("p", {}, by >= 0 ? make("b", {}, said(at(player.town.people, by).name), ": ") : null, said(textOf(player.town, text))),
  make("small", {}, timeLink(player, step), ` ${(KINDS[kind] ?? kind).toLowerCase()}${importance ? ` · importance ${importance}` : ""}`));
