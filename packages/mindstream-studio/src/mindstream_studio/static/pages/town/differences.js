/** The differences between two towns at a moment: residents at other places or activities, and different memories. */
import { html } from "../../html.js";
import { counted } from "../../format.js";
import { actAt, lastAt, spotAt, textOf } from "../../town/moment.js";
import { nameOf, placeAt, wordsOf } from "../../town/places.js";
import { Name } from "./facts.js";

/** @typedef {import("../../town/player.js").Player} Player @typedef {import("../../town/types.js").Recording} Recording @typedef {import("../../town/types.js").Person} Person */

const SHOWN = 5;

/** Describe a resident's place and activity. @param {Recording} town @param {Person} person @param {number} step */
function present(town, person, step) {
  const act = actAt(person, step), place = placeAt(town, spotAt(town, person, step));
  return { doing: act ? textOf(town, act[2]) : "", where: place > 0 ? wordsOf(town, place) : nameOf(town, 0) };
}

/** Return a resident's memories between two steps, each text once. @param {Recording} town @param {Person} person @param {number} since @param {number} until */
function remembered(town, person, since, until) {
  return new Set(person.records.slice(lastAt(person.records, since - 1) + 1, lastAt(person.records, until) + 1).map((each) => textOf(town, each[2])));
}

/**
 * @param {Recording} here @param {Recording} there
 * @param {number} step of the one @param {number} other of the other
 * @param {number} since the step up to which both towns have the same past
 */
export function differences(here, there, step, other, since) {
  const byName = new Map(there.people.map((person) => [person.name, person]));
  return here.people.flatMap((person) => {
    const same = byName.get(person.name);
    if (!same) return [];
    const now = present(here, person, step), then = present(there, same, other);
    const mine = remembered(here, person, since, step), theirs = remembered(there, same, since, other);
    const only = [...mine].filter((text) => !theirs.has(text)).reverse(), lacking = [...theirs].filter((text) => !mine.has(text)).reverse();
    const moved = now.where !== then.where, busy = now.doing !== then.doing;
    return moved || busy || only.length || lacking.length ? [{ name: person.name, now, then, moved, busy, only, lacking }] : [];
  });
}

/** @param {{player: Player, beside: import("./beside.js").Beside, step: number, own: string, since: number}} props */
export function Differences({ player, beside, step, own, since }) {
  const there = beside.town;
  if (!there) return html`<p class="soft">Loading …</p>`;
  const found = differences(player.town, there, step, beside.step, since), elsewhere = found.filter((each) => each.moved).length;
  if (!found.length) return html`<p>At this moment, the residents’ places, activities and memories are the same in both towns.</p>`;
  return html`
    <p class="soft small">In the two towns, ${counted(elsewhere, "resident is at a different place", "residents are at different places")}; ${counted(found.filter((each) => each.only.length || each.lacking.length).length, "resident has different memories", "residents have different memories")}.</p>
    <ul class="list differences">
      ${found.map((each) => html`
        <li key=${each.name}>
          <p><${Name} player=${player} name=${each.name} /></p>
          ${(each.moved || each.busy) && html`
            <dl class="facts small">
              <dt class="words">${own}</dt><dd class="words">${each.now.doing}, ${each.now.where}</dd>
              <dt class="words">${beside.name}</dt><dd class="words">${each.then.doing}, ${each.then.where}</dd>
            </dl>`}
          <${Only} town=${own} texts=${each.only} /><${Only} town=${beside.name} texts=${each.lacking} />
        </li>`)}
    </ul>`;
}

/** @param {{town: string, texts: string[]}} props */
function Only({ town, texts }) {
  if (!texts.length) return null;
  return html`
    <details class="small"><summary>Only in <span class="words">${town}</span>: remembers ${counted(texts.length, "thing", "things")}</summary>
      <ul>${texts.slice(0, SHOWN).map((text) => html`<li class="words clip">${text}</li>`)}</ul>
      ${texts.length > SHOWN && html`<p class="soft">and ${texts.length - SHOWN} more</p>`}
    </details>`;
}
