/** The thoughts and tool calls, newest first. */
import { html, useState } from "../../html.js";
import { clockOf } from "../../format.js";
import { Why } from "../../parts/why.js";
import { Briefing } from "./briefing.js";
import { Tool } from "./tool.js";
import { WhyBelieved } from "./why_believed.js";
import { reasonerOf } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

const SHOWN = ["thought", "tool_called", "believed", "set_aside", "left_unsaid"];
const FEW = 4;

/** @param {{exchanges: Exchange[], rows: Row[]}} props */
export function Thoughts({ exchanges, rows }) {
  const [many, show] = useState(FEW);
  const found = exchanges.flatMap((one) => one.rows.filter(({ event }) => SHOWN.includes(event))).sort((a, b) => b.seq - a.seq);
  if (!found.length) return null;
  return html`
    <section class="stack">
      <h2>Thoughts and tools</h2>
      <ol class="list thoughts">${found.slice(0, many).map((row) => html`<li key=${row.seq} class="stack"><${One} row=${row} rows=${rows} /></li>`)}</ol>
      ${found.length > many && html`<div><button onClick=${() => show(many + 10)}>Earlier ones</button></div>`}
    </section>`;
}

/** @param {{row: Row, rows: Row[]}} props */
function One({ row, rows }) {
  if (row.event === "tool_called") return html`<${Tool} call=${row} gave=${rows.find((each) => each.event === "observed" && each.id === row.id)} />`;
  if (row.event === "believed") return html`<p class="small soft">${reasonerOf(row.slot)} noted while it thought:</p><p class="words small">${Object.entries(row.patch).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join("\n")}</p>`;
  if (row.event === "set_aside") return html`<p class="problem words">${reasonerOf(row.slot)} could not think about it: ${row.reason}</p>`;
  if (row.event === "left_unsaid") return html`<p class="small soft">A follow-up that was not sent:</p><p class="words">${row.text}</p>`;
  return html`
    <p class="words">${row.text}</p>
    <${Briefing} thought=${row} />
    <p class="row small soft"><span>${reasonerOf(row.slot)}, ${clockOf(row.at)}</span><${Why} title="What this thought is based on" about=${row.text}><${WhyBelieved} text=${row.text} since=${row.seq} rows=${rows} /><//></p>`;
}
