/** The panels that the studio adds to the town's player: reasons, spread of facts, relations, whispers, objects. */
import { html, render } from "../../html.js";
import { base } from "../../state.js";
import { openSheet } from "../../parts/sheet.js";
import { CallsOfStep } from "../../parts/calls_behind.js";
import { make } from "../../town/elements.js";
import { actAt, entryAt } from "../../town/moment.js";
import { Beliefs } from "./beliefs.js";
import { Differences } from "./differences.js";
import { SetThing, Whisper } from "./changes.js";
import { Facts } from "./facts.js";
import { Relations } from "./relations.js";
import { Reasons } from "./reasons.js";

/** @typedef {import("../../town/player.js").Player} Player @typedef {import("../../town/types.js").View} View */

/**
 * Wrap a component as a view of the player's panel; it gets the current step.
 * @param {(step: number) => any} draw
 * @returns {View}
 */
export function component(draw) {
  const node = make("div", { class: "stack" });
  let shown = -2;
  return {
    node,
    update(step) {
      if (step === shown) return;
      shown = step;
      render(draw(step), node);
    },
    close() { render(null, node); },
  };
}

/** Steps with model calls about a resident's current act: its start, its decision, the day's plan. @param {import("../../town/types.js").Person} person @param {number} step */
function stepsBehind(person, step) {
  const found = [actAt(person, step)?.[0], entryAt(person.decisions, step)?.[0], entryAt(person.plans, step)?.[0]];
  return [...new Set(found.filter((each) => each !== undefined))];
}

/**
 * @param {string} town @param {() => void} soon @param {() => {beside: import("./beside.js").Beside, since: number} | null} pair  the town shown beside it, and the step up to which both have the same past
 * @returns {import("../../town/player.js").Options}
 */
export function optionsFor(town, soon, pair) {
  return {
    why: (person, step) => make("button", {
      type: "button", class: "link small", "aria-haspopup": "dialog", "aria-label": `Why: ${person.name}`,
      onclick: () => openSheet({ title: `Why ${person.name} does that`, body: () => html`
        <${Reasons} town=${town} resident=${person.name} step=${step} />
        ${!base.value && html`<${Beliefs} town=${town} resident=${person.name} step=${step} />`}
        ${stepsBehind(person, step).map((each) => html`<${CallsOfStep} key=${each} town=${town} resident=${person.name} step=${each} />`)}` }),
    }, "why"),
    lists: (player) => ({
      ...(pair() && { differences: ["Differences", () => component((step) => {
        const now = pair();
        return now && html`<${Differences} player=${player} beside=${now.beside} step=${step} own=${town} since=${now.since} />`;
      })] }),
      facts: ["Who knows", () => component((step) => html`<${Facts} town=${town} player=${player} step=${step} />`)],
      relations: ["Relations", () => component((step) => html`<${Relations} town=${town} player=${player} step=${step} />`)],
    }),
    extra: (kind, number, player) => (base.value ? null : extra(town, soon, kind, number, player)),
  };
}

/**
 * @param {string} town @param {() => void} soon @param {"resident" | "place"} kind @param {number} number @param {Player} player
 * @returns {View | null}
 */
function extra(town, soon, kind, number, player) {
  if (kind === "resident") return component(() => html`<${Whisper} town=${town} person=${player.town.people[number]} soon=${soon} />`);
  const isThing = (player.town.children[number] ?? []).length === 0;
  return isThing ? component(() => html`<${SetThing} town=${town} player=${player} place=${number} soon=${soon} />`) : null;
}
