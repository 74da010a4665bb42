/** Forks of a town: make one at the shown moment, compare it with the original, delete it. The effect is shown first. */
import { html } from "../../html.js";
import { ask, askAllAgain, useQuery } from "../../api.js";
import { counted } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { change, params } from "../../state.js";
import { countUntil } from "../../town/links.js";
import { momentOf } from "../../town/times.js";

/** @typedef {import("../../town/player.js").Player} Player */
/** @typedef {{town: string, of: string, step: number}} ForkShape @typedef {{towns: string[], forks: ForkShape[]}} Towns */

const MOMENT = { t: "", who: "", place: "", see: "" };

/** @param {string} town */
const pathOf = (town) => `/towns/${encodeURIComponent(town)}`;

/** Return the original town from which a fork, or the fork's origin, was made. @param {Towns} towns @param {string} name @returns {string} */
function origin(towns, name) {
  const fork = towns.forks.find((each) => each.town === name);
  return fork && fork.of !== name ? origin(towns, fork.of) : name;
}

/** Return the step up to which two towns have the same past; -1: none. @param {Towns} towns @param {string} one @param {string} other @returns {number} */
export function parted(towns, one, other) {
  /** @type {(name: string) => [string, number][]} */
  const line = (name) => {
    const fork = towns.forks.find((each) => each.town === name);
    return [[name, Infinity], ...(fork ? line(fork.of).map(([of, step]) => /** @type {[string, number]} */ ([of, Math.min(step, fork.step)])) : [])];
  };
  const there = new Map(line(other));
  const shared = line(one).find(([name]) => there.has(name));
  return shared ? Math.min(shared[1], there.get(shared[0]) ?? -1) : -1;
}

/** @param {{name: string, player: Player}} props */
export function Forking({ name, player }) {
  const { data } = useQuery({ path: "/towns" });
  const towns = /** @type {Towns | undefined} */ (data), beside = params.value.beside ?? "";
  const fork = towns?.forks.find((each) => each.town === name);
  const kin = towns ? towns.towns.filter((each) => each !== name && origin(towns, each) === origin(towns, name)) : [];
  return html`
    <button onClick=${() => forkHere(name, player)}>Fork here</button>
    ${kin.length > 0 && html`
      <select aria-label="Show next to another town, at the same moment" value=${beside} onChange=${(/** @type {any} */ event) => change({ beside: event.target.value })}>
        <option value="">this town alone</option>
        ${kin.map((each) => html`<option value=${each} selected=${each === beside}>beside ${each}</option>`)}
      </select>`}
    ${fork && html`<button onClick=${() => letGo(fork, towns?.towns.includes(fork.of) ? fork.of : "")}>Delete this fork</button>`}`;
}

/** @param {string} name @param {Player} player */
function forkHere(name, player) {
  const { town, step } = player, later = town.feed.length - countUntil(town, step);
  askChange({
    title: `Fork ${name} at ${momentOf(town, step)}`, verb: "Make the fork",
    preview: async () => html`
      <p>A second town is made from this one, with everything that happened up to ${momentOf(town, step)}, the same people and memories, and the same seed of random draws. From then on, it continues independently.</p>
      <p>${later ? `The fork does not contain ${counted(later, "later event", "later events")} of ${name}.` : "Nothing has happened after that moment yet."} ${name} stays as it is.</p>`,
    act: async () => {
      const made = /** @type {ForkShape} */ (await ask({ path: `${pathOf(name)}/fork`, body: { step } }));
      change({ town: made.town, beside: name });
      askAllAgain();
    },
  });
}

/** @param {ForkShape} fork @param {string} of */
function letGo(fork, of) {
  askChange({
    title: `Delete ${fork.town}`, verb: "Delete it", grave: true,
    preview: async () => html`<p>${fork.town}, with everything that has happened since it was forked, is deleted. This cannot be undone.${of && ` ${of} stays.`}</p>`,
    act: async () => {
      change({ ...MOMENT, town: of, beside: "" }); // first, so that no open query requests the deleted town
      await ask({ method: "DELETE", path: pathOf(fork.town) });
      askAllAgain();
    },
  });
}
