/** The bar above the map: the town's clock, buttons to let time pass, and the choice of a resident to control. */
import { html, useEffect, useRef, useState } from "../../html.js";
import { askAndWait } from "../../api.js";
import { base } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { Embody } from "./embody.js";
import { Forking } from "./fork.js";

/** @typedef {import("../../town/player.js").Player} Player */
/** @typedef {{name: string, player: Player, soon: () => void}} Props */

const HOUR_S = 3600;
const LOOK_MS = 1_000;

/** @param {Props} props */
export function Living({ name, player, soon }) {
  const clock = useRef(/** @type {HTMLSpanElement | null} */ (null));
  useEffect(() => clock.current?.replaceChildren(player.clock), [player]);
  return html`
    <div class="row living">
      <span ref=${clock} />
      ${!base.value && html`<${Run} name=${name} player=${player} soon=${soon} /><${Forking} name=${name} player=${player} /><${Embody} name=${name} player=${player} soon=${soon} />`}
    </div>`;
}

/** Run the town for some time; finished steps are stored even if the run fails. @param {Props} props */
function Run({ name, player, soon }) {
  const [progress, tell] = useState("");
  const [problem, fail] = useState(/** @type {Error | null} */ (null));
  /** @param {number} hours */
  const run = async (hours) => {
    fail(null);
    tell("Starting …");
    player.seek(player.town.last);
    const looking = setInterval(soon, LOOK_MS);
    try {
      const steps = Math.round((hours * HOUR_S) / player.town.seconds);
      await askAndWait({ path: `/towns/${encodeURIComponent(name)}/run`, body: { steps } }, tell);
    } catch (error) {
      fail(/** @type {Error} */ (error));
    }
    clearInterval(looking);
    tell("");
    soon();
  };
  return html`
    <span class="row push">
      ${progress ? html`<span class="soft small" role="status">${progress}</span>` : html`
        <span class="soft small">Let it live</span>
        <button onClick=${() => run(1)}>1 hour</button><button onClick=${() => run(24)}>1 day</button>`}
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </span>`;
}
