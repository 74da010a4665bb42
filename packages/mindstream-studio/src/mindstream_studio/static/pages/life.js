/** The page Life: a long-running goal with its ledger, diary and questions; answer, pause, change standing orders. */
import { html } from "../html.js";
import { newest } from "../events.js";
import { useQuery } from "../api.js";
import { base, seq } from "../state.js";
import { timeOf } from "../format.js";
import { Head } from "../parts/shell.js";
import { ReadFailure } from "../parts/failure.js";
import { useMoment } from "../parts/moment.js";
import { TimeSlider } from "../parts/time_slider.js";
import { Begin } from "./life/begin.js";
import { Diary } from "./life/diary.js";
import { Ledger } from "./life/ledger.js";
import { Orders } from "./life/orders.js";
import { Questions } from "./life/questions.js";
import { CHANGING } from "./life/shapes.js";
import { Standing } from "./life/standing.js";

/** @typedef {import("./life/shapes.js").Life} Life */

export function Page() {
  const at = seq.value;
  const moment = useMoment();
  const begun = useQuery({ path: "/users/{user}/log", query: { kinds: "life_began", limit: 1 } }, { on: ["life_began"] });
  const goals = /** @type {{rows: unknown[]} | undefined} */ (begun.asking ? undefined : begun.data)?.rows;
  const asked = goals?.length ? { path: "/users/{user}/life", query: /** @type {Record<string, number>} */ (at === "newest" ? {} : { at }) } : null;
  const told = useQuery(asked, { on: CHANGING });
  const problem = begun.problem ?? told.problem;
  const life = /** @type {Life | undefined} */ (told.data);
  /** @param {number} row */
  const label = (row) => (moment && row === at ? timeOf(moment) : `row ${row}`);
  return html`
    <div class="page">
      <${Head} title="Life">A mind pursues a long-running goal, turn by turn: what it works on, what it did, what it asks you.<//>
      ${goals?.length === 0 && html`<${Begin} />`}
      ${problem && html`<${ReadFailure} problem=${problem} again=${begun.problem ? begun.again : told.again} />`}
      ${life && !life.goal && html`<p class="soft">At that moment the mind had no goal yet.</p>`}
      ${life && html`<${TimeSlider} most=${newest.value} label=${label} />`}
      ${life?.goal && html`<${Whole} life=${life} editable=${!base.value && at === "newest"} />`}
    </div>`;
}

/** @param {{life: Life, editable: boolean}} props */
function Whole({ life, editable }) {
  return html`
    <${Standing} life=${life} editable=${editable} />
    <${Questions} life=${life} editable=${editable} />
    <div class="columns">
      <${Diary} />
      <div class="stack lead">
        <${Ledger} tasks=${life.tasks} editable=${editable} />
        <${Orders} life=${life} editable=${editable} />
      </div>
    </div>`;
}
