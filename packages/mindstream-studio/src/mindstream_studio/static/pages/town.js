/** The page Town: a map with its residents at any moment; a resident's day and reasons, spread of facts; whisper, set, control. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { base, change, params } from "../state.js";
import { Empty } from "../parts/empty.js";
import { ReadFailure } from "../parts/failure.js";
import { Head } from "../parts/shell.js";
import { Watch } from "./town/watch.js";

export function Page() {
  const { data, problem, again } = useQuery({ path: "/towns" });
  const towns = /** @type {{towns: string[]} | undefined} */ (data)?.towns;
  const name = params.value.town || towns?.[0] || "";
  return html`
    <div class="page town-page">
      <${Head} title="Town">${towns && towns.length > 1 && html`<${Which} towns=${towns} name=${name} />`}<//>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${towns && !towns.length && html`<${None} />`}
      ${name && towns && html`<${Watch} key=${`${base.value} ${name}`} name=${name} />`}
    </div>`;
}

/** @param {{towns: string[], name: string}} props */
function Which({ towns, name }) {
  const chosen = (/** @type {any} */ event) => change({ town: event.target.value, beside: "", t: "", who: "", place: "", see: "" });
  return html`<select aria-label="Which town" value=${name} onChange=${chosen}>${towns.map((each) => html`<option value=${each}>${each}</option>`)}</select>`;
}

function None() {
  return html`
    <${Empty} title="This server shows no town">
      <p><code>mindstream town new --data ./ville</code> creates a town, and <code>mindstream studio --town ville=./ville</code> shows it here.</p>
    <//>`;
}
