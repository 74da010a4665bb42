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
    <p class="soft measure">A pool learns which of its examples help with which questions. It is measured on pairs that it did not learn from: what share of an answer its first three examples bring.</p>
    ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
    ${!growth && !problem && html`<p class="soft" role="status">It is measured …</p>`}
    ${growth && (growth.points.length ? html`<${Curve} growth=${growth} />` : html`<${Empty} title="It is too small to be measured"><p class="words">${growth.why}</p><//>`)}
    ${versions.length > 0 && html`<${Versions} versions=${versions} />`}`;
}

/** @param {{growth: Growth}} props */
function Curve({ growth: { points } }) {
  const last = points.at(-1);
  const [helped, untrained] = [last?.helped ?? 0, last?.untrained ?? 0];
  const words = `With ${last?.size} pairs its first examples help ${percent(helped)}, and ${percent(untrained)} by likeness alone, as it was before it learned.`;
  return html`
    <${Chart} title="How well its pairs are helped, as it grew" xs=${points.map(({ size }) => size)} words=${words}
      sayX=${(/** @type {number} */ size) => `${size} pairs`} sayY=${percent}
      curves=${[{ label: "what it has learned", values: points.map((each) => each.helped), points: true }, { label: "by likeness alone", values: points.map((each) => each.untrained), token: "--mark", dashed: true, points: true }]} />
    <p class="key small soft"><span class="learned">what it has learned</span> <span class="alike">by likeness alone, before it learned</span></p>`;
}

/** @type {import("../../parts/table.js").Column<Version>[]} */
const COLUMNS = [
  { title: "Version", of: ({ number: version }) => version },
  { title: "Learned from", numeric: true, of: ({ learned_from }) => `${learned_from} pairs` },
  { title: "Helps", numeric: true, of: ({ helps }) => (helps ? number(helps) : "too few to say") },
  { title: "Before", numeric: true, of: ({ before }) => (before ? number(before) : "") },
  { title: "", of: ({ held }) => (held ? "in use since" : "no better: not used") },
];

/** @param {{versions: Version[]}} props */
function Versions({ versions }) {
  return html`
    <h3>Versions</h3>
    <p class="soft small">Helps: how often what is ranked first helps, from 0 to 1, on pairs that were held out.</p>
    <${Table} caption="Versions of what the pool has learned" columns=${COLUMNS} rows=${[...versions].reverse()} />`;
}
