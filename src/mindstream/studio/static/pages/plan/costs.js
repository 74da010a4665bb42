/** What runs took: tokens, seconds, dollars; and the calls of models behind it. */
import { html } from "../../html.js";
import { counted, dollars, lasting, millis, whole } from "../../format.js";
import { isPage } from "../../pages.js";
import { linkTo } from "../../state.js";
import { Table } from "../../parts/table.js";

/** @typedef {import("./shapes.js").Spent} Spent @typedef {import("./shapes.js").Call} Call */

/** What a run cost, in words: a price that nobody knows is no zero. @param {Spent | null | undefined} spent @param {Call[]} [calls] */
export function costOf(spent, calls = []) {
  if (!spent) return "not known";
  const asked = calls.filter(({ model }) => model !== "rules" && !model.startsWith("playback:"));
  const unpriced = asked.filter(({ cost_usd }) => cost_usd === null).length;
  if (spent.cost_usd > 0) return unpriced ? `${dollars(spent.cost_usd)} and ${counted(unpriced, "call")} without a known price` : dollars(spent.cost_usd);
  if (!spent.model_calls || (calls.length && !asked.length)) return "nothing";
  return "price not known";
}

/** How long it took, below a second in milliseconds. @param {number} seconds */
export const took = (seconds) => (seconds < 1 ? millis(seconds * 1000) : lasting(seconds));

/** @param {{spent: Spent | null | undefined, calls?: Call[]}} props */
export function Took({ spent, calls = [] }) {
  if (!spent) return html`<span class="soft">nothing yet</span>`;
  const [cost, tokens] = [costOf(spent, calls), `${whole(spent.tokens)} tokens`];
  return spent.cost_usd > 0
    ? html`<span class="took number"><b>${cost}</b> · ${tokens} · ${took(spent.seconds)}</span>`
    : html`<span class="took number"><b>${tokens}</b> · ${took(spent.seconds)} · ${cost}</span>`;
}

/** @type {import("../../parts/table.js").Column<Call>[]} */
const COLUMNS = [
  { title: "for", of: ({ seq, prompt, role }) => (isPage("traces") ? html`<a href=${linkTo("traces", { call: seq, seq: "" })}>${prompt || role}</a>` : prompt || role) },
  { title: "tokens", numeric: true, of: ({ input_tokens, output_tokens }) => whole(input_tokens + output_tokens) },
  { title: "seconds", numeric: true, of: ({ seconds }) => seconds.toFixed(1) },
  { title: "cost", numeric: true, of: ({ model, cost_usd }) => (model === "rules" ? "nothing" : cost_usd === null ? "not known" : dollars(cost_usd)) },
];

/** What a run took, in full. @param {{spent: Spent, calls: Call[]}} props */
export function Bill({ spent, calls }) {
  return html`
    <dl class="facts">
      <dt>cost</dt><dd>${costOf(spent, calls)}</dd>
      <dt>tokens</dt><dd>${whole(spent.tokens)}</dd>
      <dt>time</dt><dd>${took(spent.seconds)}</dd>
      <dt>calls of models</dt><dd>${whole(spent.model_calls)}</dd>
      <dt>calls of tools</dt><dd>${whole(spent.tool_calls)}</dd>
    </dl>
    <p class="soft small">A price is known where the model's is listed; rules and recordings cost nothing.</p>
    ${calls.length > 0 && html`<h3>The calls of models</h3><${Table} caption="The calls of models" columns=${COLUMNS} rows=${calls} />`}`;
}
