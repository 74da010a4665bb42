/** Control a resident, or enter the town as a visitor: arrow keys walk, the user can speak, and time passes with each action. */
import { html, useEffect, useRef, useState } from "../../html.js";
import { ask } from "../../api.js";
import { askChange } from "../../parts/dialog.js";
import { addressOf, around, nameOf } from "../../town/places.js";
import { Around } from "./around.js";
import { nearestThatWay, stepThatWay } from "./ways.js";

/** @typedef {import("./ways.js").Surroundings} Surroundings @typedef {import("./living.js").Props} Props */
/** @typedef {{name: string, visitor: boolean}} Who */

const LONGEST_WALK = 60; // maximum minutes of a walk, waited for one by one
const LONGEST_NAME = 100;

/** @param {Props} props */
export function Embody({ name, player, soon }) {
  const [who, choose] = useState(/** @type {Who | null} */ (null));
  const people = player.town.people.filter((each) => !each.visits).map((each) => each.name);
  const begin = (/** @type {any} */ event) => {
    const resident = event.target.value;
    event.target.value = "";
    if (resident === VISITOR) return comeIn(name, player, (/** @type {string} */ visitor) => { choose({ name: visitor, visitor: true }); soon(); });
    askChange({
      title: `Control ${resident}`, verb: "Begin",
      preview: async () => html`<p>From the town’s next step on, you control ${resident}: you decide where it walks, what it does and what it says. The other residents see, hear and remember what you do. When you leave, ${resident} plans the rest of the day.</p>`,
      act: async () => {
        await ask({ path: pathOf(name, resident), body: {} });
        choose({ name: resident, visitor: false });
        soon();
      },
    });
  };
  if (who) return html`<${Lived} key=${who.name} name=${name} player=${player} soon=${soon} who=${who} leave=${() => choose(null)} />`;
  return html`
    <select aria-label="Control a resident" value="" onChange=${begin}>
      <option value="" disabled>Control …</option>
      <option value=${VISITOR}>a visitor …</option>
      ${people.map((each) => html`<option value=${each}>${each}</option>`)}
    </select>`;
}

const VISITOR = " "; // no resident has this name

/** Ask for the visitor's name and entrance. @param {string} town @param {import("./living.js").Props["player"]} player @param {(name: string) => void} begun */
function comeIn(town, player, begun) {
  const rooms = player.town.places.map((_, number) => number).filter((number) => around(player.town, number).length === 2);
  let [visitor, place] = ["", ""];
  askChange({
    title: "Enter as a visitor", verb: "Enter",
    preview: async () => html`<div class="visitor">
      <p>You walk, look and speak in the town as a visitor. Residents who see you remember you, and may tell others what you say. When you leave, you are no longer in the town.</p>
      <label>Your name <input required maxlength=${LONGEST_NAME} onInput=${(/** @type {any} */ event) => { visitor = event.target.value.trim(); }} /></label>
      <label>You enter at
        <select onChange=${(/** @type {any} */ event) => { place = event.target.value; }}>
          <option value="">any public place</option>
          ${rooms.map((number) => html`<option value=${`${nameOf(player.town, 0)}:${addressOf(player.town, number)}`}>${addressOf(player.town, number).split(":").join(", ")}</option>`)}
        </select></label></div>`,
    act: async () => {
      await ask({ path: pathOf(town, visitor), body: { visitor: true, place } });
      begun(visitor);
    },
  });
}

/** @param {string} town @param {string} resident @param {string} [more] */
const pathOf = (town, resident, more = "") => `/towns/${encodeURIComponent(town)}/embody/${encodeURIComponent(resident)}${more}`;

/** @param {Props & {who: Who, leave: () => void}} props */
function Lived({ name, player, soon, who, leave }) {
  const [now, see] = useState(/** @type {Surroundings | null} */ (null));
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const busy = useRef(true); // true until keys are handled, and while an action runs
  const [waits, setWaits] = useState(true);
  /** @param {boolean} value */
  const hold = (value) => { busy.current = value; setWaits(value); };
  const number = player.town.people.findIndex((each) => each.name === who.name), { visitor } = who;

  /** Run one action; time passes while it runs, until a resident speaks to the user. @param {Record<string, unknown>} body */
  const act = async (body) => {
    if (busy.current) return;
    hold(true);
    tell(null);
    try {
      let found = /** @type {Surroundings} */ (await ask({ path: pathOf(name, who.name, "/act"), body: { ...body, visitor, since: body.since ?? now?.step ?? 0 } }));
      const since = now?.step ?? found.step;
      for (let i = 0; i < LONGEST_WALK && found.on_the_way && !found.talks_with; i++) {
        see(found);
        soon();
        found = await ask({ path: pathOf(name, who.name, "/act"), body: { act: "wait", minutes: 1, visitor, since } });
      }
      see(found);
    } catch (error) {
      tell(/** @type {Error} */ (error));
    }
    hold(false);
    soon();
  };
  const look = () => { ask({ path: pathOf(name, who.name), query: { visitor } }).then((found) => see(/** @type {Surroundings} */ (found)), tell); };
  useEffect(look, [who.name]);
  useEffect(() => {
    if (number < 0) return; // the recording does not know the visitor yet
    player.choose({ who: number });
    player.follow(true);
    player.seek(player.town.last);
  }, [player, number]);
  useEffect(() => {
    player.options.keys = (event) => {
      const place = now && !player.town.cells && nearestThatWay(player.town, now, event.key), way = player.town.cells && stepThatWay(event.key);
      const mine = Boolean(now && event.key.startsWith("Arrow") && !event.shiftKey && event.target instanceof Element && !event.target.closest("[role=tablist]"));
      if (mine && way) act({ act: "step", way });
      else if (mine && place) act({ act: "go", place, waits: false });
      return mine;
    };
    return () => { delete player.options.keys; };
  }, [now, player]);
  useEffect(() => { if (now) hold(false); }, [now !== null]);
  const end = async () => {
    await ask({ path: pathOf(name, who.name, "/leave"), body: { visitor } }).catch(tell);
    soon();
    leave();
  };
  return html`<${Around} who=${who.name} now=${now} problem=${problem} waits=${waits} act=${act} look=${look} end=${end} />`;
}
