/** The page Traces: all model calls with their cost and purpose; totals by day and role; budgets. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { newest } from "../events.js";
import { change, params, seq, user } from "../state.js";
import { timeOf } from "../format.js";
import { Head } from "../parts/shell.js";
import { useMoment } from "../parts/moment.js";
import { TimeSlider } from "../parts/time_slider.js";
import { Calls } from "./traces/calls.js";
import { Opened } from "./traces/opened.js";
import { Totals } from "./traces/totals.js";

export function Page() {
  const { call, town = "" } = params.value;
  const moment = useMoment();
  /** @param {number} row */
  const label = (row) => (moment && row === seq.value ? timeOf(moment) : `row ${row}`);
  return html`
    <div class="page traces">
      <${Head} title="Traces">Every model call: prompt, reply, cost and purpose.<//>
      <${Source} />
      ${!town && html`<${TimeSlider} most=${newest.value} label=${label} />`}
      <${Totals} brief=${Boolean(call)} />
      <div class=${call ? "columns beside-call" : ""}>
        <${Calls} />
        ${call && html`<${Opened} key=${`${town} ${call}`} call=${call} />`}
      </div>
    </div>`;
}

/** The choice of whose calls are shown: those of the mind or of a town. */
function Source() {
  const { data } = useQuery({ path: "/towns" });
  const towns = /** @type {{towns: string[]} | undefined} */ (data)?.towns ?? [];
  const town = params.value.town ?? "";
  if (!towns.length && !town) return null;
  const names = [...new Set([...towns, ...(town ? [town] : [])])];
  const choose = (/** @type {any} */ event) => change({ town: event.target.value, call: "", role: "", day: "", about: "", resident: "", step: "", seq: "" });
  return html`
    <div class="row">
      <select aria-label="Whose model calls are shown" value=${town} onChange=${choose}>
        <option value="">of ${user.value}’s mind</option>
        ${names.map((name) => html`<option value=${name}>of the town ${name}</option>`)}
      </select>
    </div>`;
}
