/** The cost of runs: tokens, seconds, dollars; and their model calls. */
import { html } from "../../html.js";
import { lasting, millis, whole } from "../../format.js";
import { isPage } from "../../pages.js";
import { linkTo } from "../../state.js";
import { costOf, costOfCall, whoAnswered } from "../../parts/costs.js";
import { Table } from "../../parts/table.js";

/** @typedef {import("./shapes.js").Spent} Spent @typedef {import("./shapes.js").Call} Call */

/** Format a duration; below a second in milliseconds. @param {number} seconds */
export const took = (seconds) => (seconds < 1 ? millis(seconds * 1000) : lasting(seconds));

/** @param {{spent: Spent | null | undefined}} props */
export function Took({ spent }) {
  if (!spent) return html`<span class="soft">no cost yet</span>`;
  return html`<span class="took number"><b>cost: ${costOf(spent)}</b> · ${whole(spent.tokens)} tokens · ${took(spent.seconds)}</span>`;
}

/** @type {import("../../parts/table.js").Column<Call>[]} */
const COLUMNS = [
  { title: "for", of: ({ seq, prompt, role }) => (isPage("traces") ? html`<a href=${linkTo("traces", { call: seq, seq: "" })}>${prompt || role}</a>` : prompt || role) },
  { title: "tokens", numeric: true, of: ({ input_tokens, output_tokens }) => whole(input_tokens + output_tokens) },
  { title: "seconds", numeric: true, of: ({ seconds }) => seconds.toFixed(1) },
  { title: "cost", numeric: true, of: costOfCall },
];

/** The complete cost of a run. @param {{spent: Spent, calls: Call[]}} props */
export function Bill({ spent, calls }) {
  return html`
    <dl class="facts">
      <dt>cost</dt><dd>${costOf(spent)}</dd>
      <dt>tokens</dt><dd>${whole(spent.tokens)}</dd>
      <dt>time</dt><dd>${took(spent.seconds)}</dd>
      <dt>model calls</dt><dd>${whole(spent.model_calls)}</dd>
      <dt>tool calls</dt><dd>${whole(spent.tool_calls)}</dd>
    </dl>
    <p class="soft small">${calls.length > 0 && html`Answered by ${[...new Set(calls.map(({ model }) => whoAnswered(model)))].join(", ")}. `}Answers by rules and from recordings are free. For other calls, the cost is known if the model’s price is listed.</p>
    ${calls.length > 0 && html`<h3>The model calls</h3><${Table} caption="The model calls" columns=${COLUMNS} rows=${calls} />`}`;
}
