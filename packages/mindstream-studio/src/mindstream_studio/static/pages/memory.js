/** The page Memory: search, see why a memory was found and what it is based on; or browse memories by time. */
import { html } from "../html.js";
import { newest } from "../events.js";
import { params, seq } from "../state.js";
import { timeOf } from "../format.js";
import { Head } from "../parts/shell.js";
import { useMoment } from "../parts/moment.js";
import { Tabs } from "../parts/tabs.js";
import { TimeSlider } from "../parts/time_slider.js";
import { Search } from "./memory/search.js";
import { TimeLine } from "./memory/time_line.js";
import { Found } from "./memory/found.js";
import { Opened } from "./memory/opened.js";
import { Sleeps } from "./memory/sleeps.js";

export function Page() {
  const { q, id } = params.value;
  const moment = useMoment();
  const ready = seq.value === "newest" || moment !== undefined;
  /** @param {number} row */
  const label = (row) => (moment && row === seq.value ? timeOf(moment) : `row ${row}`);
  const asleep = !q && params.value.view === "sleep";
  return html`
    <div class="page">
      <${Head} title="Memory">The memories of a mind. Open one to see what it is based on, to correct it or to forget it.<//>
      <${Search} />
      ${!q && html`<${Tabs} name="view" label="Views of this memory" views=${[["", "Time line"], ["sleep", "Sleep and dreams"]]} />`}
      ${!asleep && html`<${TimeSlider} most=${newest.value} label=${label} />`}
      <div class=${asleep && !id ? "stack" : "columns"}>
        ${asleep ? html`<${Sleeps} />` : html`
          <section class="stack" aria-label=${q ? "What was found" : "Time line"}>
            ${ready && (q ? html`<${Found} query=${q} moment=${moment} />` : html`<${TimeLine} moment=${moment} />`)}
          </section>`}
        ${id && html`<${Opened} key=${id} id=${id} />`}
      </div>
    </div>`;
}
