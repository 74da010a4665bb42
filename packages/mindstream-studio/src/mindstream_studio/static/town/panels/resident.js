// The panel of one resident: follow it, choose the view, and tabs about its life.

import { at } from "../lists.js";
import { make, said } from "../elements.js";
import { aboutView } from "./about.js";
import { memoryView } from "./memory.js";
import { nowView } from "./now.js";
import { tabbed } from "./tabs.js";
import { talksView } from "./talks.js";
import { titled } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { View } from "../types.js" */

/**
 * @param {Player} player
 * @param {number} number
 * @returns {View}
 */
export function residentView(player, number) {
  const person = at(player.town.people, number), { state } = player;
  const face = make("span", { class: "face", hue: person.hue, "aria-hidden": "true" }, said(person.initials));
  const title = titled(player, [face], said(person.name), make("p", { class: "soft" }, person.age ? `${person.age} · ` : null, said(person.innate)));
  const body = tabbed({
    now: ["Now", () => nowView(player, person)], mind: ["Memory", () => memoryView(player, person)], talks: ["Talks", () => talksView(player, person)],
    about: ["About", () => aboutView(player, person)], ...player.tabsOf(person),
  }, state.tab, (name) => { state.tab = name; }, () => player.step);
  const extra = player.extra("resident", number);
  return {
    node: make("div", {}, title, bar(player), extra?.node, body.node),
    update(step) { extra?.update(step); body.update(step); },
    close() { extra?.close?.(); body.close?.(); },
  };
}

/** @param {Player} player */
function bar(player) {
  const { state } = player;
  const follow = make("button", { type: "button", class: "follow", "aria-pressed": String(state.follow), onclick: () => player.follow(!state.follow) }, "Follow");
  const own = [false, true].map((value) => make("button", { type: "button", "aria-pressed": String(state.own === value), onclick: () => player.see(value) },
    value ? "Experienced" : "Happened"));
  return make("div", { class: "row" }, follow,
    make("div", { class: "switch", role: "group", "aria-label": "The town as it happened, or as this resident experienced it" }, own));
}
