/** Living in a town as somebody: arrow keys walk to what lies that way, words are said, time goes on with what one does. */
import { html, useEffect, useRef, useState } from "../../html.js";
import { ask } from "../../api.js";
import { askChange } from "../../parts/dialog.js";
import { Around } from "./around.js";
import { nearestThatWay } from "./ways.js";

/** @typedef {import("./ways.js").Surroundings} Surroundings @typedef {import("./living.js").Props} Props */

const LONGEST_WALK = 60; // minutes that are waited for, one after the other

/** @param {Props} props */
export function Embody({ name, player, soon }) {
  const [who, choose] = useState("");
  const people = player.town.people.map((each) => each.name);
  const begin = (/** @type {any} */ event) => {
    const resident = event.target.value;
    event.target.value = "";
    askChange({
      title: `Live as ${resident}`, verb: "Begin",
      preview: async () => html`<p>From the town’s next step on ${resident} does nothing by itself: you walk, do and say. The others see, hear and remember it. When you leave, ${resident} plans the rest of the day.</p>`,
      act: async () => {
        await ask({ path: pathOf(name, resident), body: {} });
        choose(resident);
        soon();
      },
    });
  };
  if (who) return html`<${Lived} name=${name} player=${player} soon=${soon} who=${who} leave=${() => choose("")} />`;
  return html`
    <select aria-label="Live as somebody" value="" onChange=${begin}>
      <option value="" disabled>Live as …</option>
      ${people.map((each) => html`<option value=${each}>${each}</option>`)}
    </select>`;
}

/** @param {string} town @param {string} resident @param {string} [more] */
const pathOf = (town, resident, more = "") => `/towns/${encodeURIComponent(town)}/embody/${encodeURIComponent(resident)}${more}`;

/** @param {Props & {who: string, leave: () => void}} props */
function Lived({ name, player, soon, who, leave }) {
  const [now, see] = useState(/** @type {Surroundings | null} */ (null));
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const busy = useRef(false);
  const number = player.town.people.findIndex((each) => each.name === who);

  /** Do one thing; while it is under way, and nobody speaks to one, time goes on. @param {Record<string, unknown>} body */
  const act = async (body) => {
    if (busy.current) return;
    busy.current = true;
    tell(null);
    try {
      let found = /** @type {Surroundings} */ (await ask({ path: pathOf(name, who, "/act"), body: { ...body, since: body.since ?? now?.step ?? 0 } }));
      const since = now?.step ?? found.step;
      for (let i = 0; i < LONGEST_WALK && found.on_the_way && !found.talks_with; i++) {
        see(found);
        soon();
        found = await ask({ path: pathOf(name, who, "/act"), body: { act: "wait", minutes: 1, since } });
      }
      see(found);
    } catch (error) {
      tell(/** @type {Error} */ (error));
    }
    busy.current = false;
    soon();
  };
  useEffect(() => {
    ask({ path: pathOf(name, who) }).then((found) => see(/** @type {Surroundings} */ (found)), tell);
    player.choose({ who: number });
    player.follow(true);
    player.seek(player.town.last);
  }, [who]);
  useEffect(() => {
    player.options.keys = (event) => {
      const found = now && nearestThatWay(player.town, now, event.key);
      if (found) act({ act: "go", place: found, waits: false });
      return Boolean(now && event.key.startsWith("Arrow") && !event.shiftKey && event.target instanceof Element && !event.target.closest("[role=tablist]"));
    };
    return () => { delete player.options.keys; };
  }, [now, player]);
  const end = async () => {
    await ask({ path: pathOf(name, who, "/leave"), body: {} }).catch(tell);
    soon();
    leave();
  };
  return html`<${Around} who=${who} now=${now} problem=${problem} act=${act} end=${end} />`;
}
