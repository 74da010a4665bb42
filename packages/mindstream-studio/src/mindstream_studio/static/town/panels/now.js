// A resident's current act with its reason, the day's plan, and recent percepts.

import { at } from "../lists.js";
import { make, said } from "../elements.js";
import { actAt, entryAt, isWalking, lastAt, planAt, spotAt, talkAt, textOf, WHYS } from "../moment.js";
import { arenaOf, nameOf, placeAt } from "../places.js";
import { clockOf, minuteOf, timeOf, timeSeenFrom } from "../times.js";
import { linesOf, personLink, placeLink, timeLink } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { Act, Person, Seen, View } from "../types.js" */

const NOTICED = 10;
/** @type {Record<string, string>} */
const REASONS = { plan: "as planned", talk: "they talk", wait: "waiting", react: "because of what was seen" };

/**
 * @param {Player} player
 * @param {Person} person
 * @returns {View}
 */
export function nowView(player, person) {
  const { town } = player, doing = make("div", { class: "doing" }), mind = make("div"), seen = make("ol", { class: "list" });
  const plan = make("ol", { class: "plan", tabindex: 0, "aria-label": "Today’s plan" });
  let key = "";
  return {
    node: make("div", {}, doing, mind, make("h3", {}, "Today’s plan"), plan, make("h3", {}, "Noticed lately"), seen),
    update(step) {
      const act = actAt(person, step), minute = minuteOf(town, step), here = placeAt(town, spotAt(town, person, step)), upTo = lastAt(person.seen, step);
      const blocks = planAt(town, person, step);
      if (key === (key = [lastAt(person.acts, step), isWalking(town, act, step), lastAt(person.plans, step), lastAt(person.decisions, step), upTo, here,
        blocks.findIndex((block) => block.start <= minute && minute < block.end)].join())) return;
      doing.replaceChildren(...doingNow(player, person, act, step, here));
      mind.replaceChildren(...decided(player, person, step));
      plan.replaceChildren(...planned(player, blocks, minute));
      requestAnimationFrame(() => { plan.scrollTop = (/** @type {HTMLElement | null} */ (plan.querySelector(".present"))?.offsetTop ?? 0) - 80; });
      seen.replaceChildren(...(upTo < 0 ? [make("li", { class: "nothing" }, "Nothing yet.")]
        : person.seen.slice(Math.max(0, upTo + 1 - NOTICED), upTo + 1).reverse().map((each) => noticed(player, each))));
    },
  };
}

/**
 * @param {Player} player
 * @param {Person} person
 * @param {Act | null} act
 * @param {number} step
 * @param {number} here
 */
function doingNow(player, person, act, step, here) {
  const { town } = player;
  if (!act) return [make("p", { class: "what" }, "Not here yet.")];
  const target = act[3], because = textOf(town, act[5]), talk = WHYS[act[4]] === "talk" ? talkAt(person, step) : null;
  const where = target > 0 ? [isWalking(town, act, step) ? "on the way to " : "at ", placeLink(player, target)] : here > 0 ? ["in ", placeLink(player, here)] : ["outdoors"];
  const liver = textOf(town, entryAt(person.lived, step)?.[1] ?? -1);
  const reason = because || REASONS[WHYS[act[4]] ?? ""];
  return [
    make("p", { class: "what" }, said(textOf(town, act[2]))),
    liver ? make("p", { class: "soft" }, "controlled by ", said(liver)) : null,
    make("p", { class: "soft" }, ...where, `, ${timeOf(town, act[0])}–${timeOf(town, act[0] + act[1])}`),
    reason ? make("p", { class: "why" }, make("b", {}, "Why: "), said(reason), " ", player.whyButton(person, step)) : player.whyButton(person, step),
    talk?.[3].length ? make("details", {}, make("summary", {}, "What is said"), linesOf(player, talk[3])) : null,
  ].filter((each) => each !== null);
}

/**
 * The last decision: what it was about, what came to mind with its score, how probable a yes was, and what was drawn.
 * @param {Player} player
 * @param {Person} person
 * @param {number} step
 */
function decided({ town }, person, step) {
  const decision = entryAt(person.decisions, step);
  if (!decision) return [];
  const [since, about, , p, yes, recalled, draw] = decision;
  const memories = recalled.map(([number, score]) => make("li", {}, said(textOf(town, at(person.records, number)[2])), make("small", {}, ` ${score.toFixed(2)}`)));
  const drawn = draw === undefined ? "" : `; the random number from 0 to 100 was ${Math.round(draw * 100)}`;
  return [make("details", { class: "decision" },
    make("summary", {}, `Last decision, ${timeSeenFrom(town, since, step)}: `, said(textOf(town, about)), ` — ${yes ? "yes" : "no"} (a yes was ${Math.round(p * 100)} % likely${drawn})`),
    make("p", { class: "soft" }, memories.length ? "Recalled memories, with their scores:" : "No memory was recalled."),
    memories.length ? make("ol", { class: "list recalled" }, memories) : null)];
}

/**
 * The day's plan; equal activities that follow each other are one line.
 * @param {Player} player
 * @param {ReturnType<typeof planAt>} all
 * @param {number} minute
 */
function planned({ town }, all, minute) {
  /** @type {typeof all} */
  const blocks = [];
  for (const block of all) {
    const before = blocks[blocks.length - 1];
    if (before && before.what === block.what && before.place === block.place) before.end = block.end;
    else blocks.push(block);
  }
  if (!blocks.length) return [make("li", { class: "nothing" }, "No plan yet.")];
  return blocks.map((block) => {
    const now = block.start <= minute && minute < block.end;
    return make("li", { class: now ? "present" : block.end <= minute ? "past" : "", "aria-current": now ? "time" : null },
      make("span", { class: "when" }, clockOf(block.start)),
      make("span", {}, said(block.what), block.place > 0 ? make("small", {}, " ", said(nameOf(town, arenaOf(town, block.place)))) : null));
  });
}

/**
 * @param {Player} player
 * @param {Seen} seen
 */
function noticed(player, [step, who, place, what]) {
  const subject = who >= 0 ? personLink(player, who) : place > 0 ? placeLink(player, place) : "something";
  return make("li", {}, timeLink(player, step), " ", subject, who >= 0 ? " was " : ": ", said(textOf(player.town, what)));
}
