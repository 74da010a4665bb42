/** The learned ranking of a pool: its measured benefit as the pool grew, and its versions. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { number, percent } from "../../format.js";
import { Chart } from "../../parts/chart.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { Table } from "../../parts/table.js";
import { pathOf } from "./shapes.js";

/** @typedef {import("./shapes.js").Details} Details @typedef {import("./shapes.js").Growth} Growth @typedef {import("./shapes.js").Version} Version */

/** @param {{pool: string, details: Details}} props */
export function Learning({ pool, details: { versions } }) {
  const { data, problem, again } = useQuery({ path: `${pathOf(pool)}/growth` });
  const growth = /** @type {Growth | undefined} */ (data);
  return html`
    <p class="soft measure">A pool learns which of its examples help with which questions. The benefit is a similarity from 0 to 100 %: the answers of the three examples that rank first are compared with the question’s own answer. The value shown is the mean over several questions. The questions are those of held-out pairs (15 % of the pairs), from which the measured ranking does not learn. If fewer than 12 pairs would be held out, the questions of all pairs are used.</p>
    ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
    ${!growth && !problem && html`<p class="soft" role="status">Measuring …</p>`}
    ${growth && (growth.points.length ? html`<${Curve} growth=${growth} />` : html`<${Empty} title="The pool is too small to be measured"><p class="words">${growth.why}</p><//>`)}
    ${versions.length > 0 && html`<${Versions} versions=${versions} />`}`;
}

/** @param {{growth: Growth}} props */
function Curve({ growth: { points } }) {
  const last = points.at(-1);
  const [helped, untrained] = [last?.helped ?? 0, last?.untrained ?? 0];
  const words = `With ${last?.size} pairs and the learned ranking, the benefit is ${percent(helped)}; with ranking by similarity alone, as before learning, ${percent(untrained)}.`;
  return html`
    <${Chart} title="Benefit of the examples as the pool grew" xs=${points.map(({ size }) => size)} words=${words}
      sayX=${(/** @type {number} */ size) => `${size} pairs`} sayY=${percent}
      curves=${[{ label: "learned ranking", values: points.map((each) => each.helped), points: true }, { label: "similarity alone", values: points.map((each) => each.untrained), token: "--mark", dashed: true, points: true }]} />
    <p class="key small soft"><span class="learned">learned ranking</span> <span class="alike">similarity alone, before learning</span></p>`;
}

/** @type {import("../../parts/table.js").Column<Version>[]} */
const COLUMNS = [
  { title: "Version", of: ({ number: version }) => version },
  { title: "Learned from", numeric: true, of: ({ learned_from }) => `${learned_from} pairs` },
  { title: "Helps", numeric: true, of: ({ helps }) => (helps ? number(helps) : "too few to say") },
  { title: "Before", numeric: true, of: ({ before }) => (before ? number(before) : "") },
  { title: "", of: ({ held }) => (held ? "used from then on" : "not better, so not used") },
];

/** @param {{versions: Version[]}} props */
function Versions({ versions }) {
  return html`
    <h3>Versions</h3>
    <p class="soft small">“Helps” is the share (0 to 1) of held-out pairs for which the example ranked first helps; “Before” is the share for the previous version.</p>
    <${Table} caption="Versions of the learned ranking" columns=${COLUMNS} rows=${[...versions].reverse()} />`;
}
