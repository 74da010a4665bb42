/** The reasons of a belief or plan step: the user's words, the thought, tool results and the model call behind it. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { held } from "../../network.js";
import { isPage } from "../../pages.js";
import { whoAnswered } from "../../parts/costs.js";
import { base, linkTo } from "../../state.js";
import { timeOf } from "../../format.js";
import { thoughtBehind } from "./believed.js";
import { Briefing } from "./briefing.js";
import { Tool } from "./tool.js";
import { reasonerOf } from "./words.js";
import { ERASED } from "./shapes.js";

/** @typedef {import("./shapes.js").Row} Row */

/** @param {{text: string, since: number, rows: Row[]}} props `since`: the row that added the belief or plan, or of the thought itself */
export function WhyBelieved({ text, since, rows }) {
  const thought = thoughtBehind(rows, since);
  const about = /** @type {number[]} */ (thought?.about ?? []);
  return html`
    <p class="words card">${text}</p>
    ${about.length > 0 && html`<h3>The messages that it is based on</h3>`}
    ${about.map((seq) => html`<${Words} key=${seq} seq=${seq} known=${rows.find((row) => row.seq === seq && row.event === "heard")} />`)}
    ${thought ? html`<${Thinking} thought=${thought} rows=${rows} />` : html`<p class="soft">The log contains no thought that led to it.</p>`}`;
}

/** What was said, at a row. @param {{seq: number, known: Row | undefined}} props */
function Words({ seq, known }) {
  const { data } = useQuery(known ? null : { path: "/users/{user}/log", query: { after: seq - 1, limit: 1, kinds: "heard" } });
  const row = known ?? /** @type {{rows: Row[]} | undefined} */ (data)?.rows.find((each) => each.seq === seq);
  if (!row) return held && data ? html`<p class="soft">This message is from another talk, which is not in this file.</p>` : null;
  return html`
    <figure class="stack">
      <p class="words card">${row.text}</p>
      <p class="row small soft"><span>${row.by}, ${timeOf(row.at)}</span>${row.text !== ERASED && isPage("memory") && html`<a href=${linkTo("memory", { id: row.record, seq: "" })}>${base.value ? "in memory" : "in memory: correct or forget it"}</a>`}</p>
    </figure>`;
}

/** @param {{thought: Row, rows: Row[]}} props */
function Thinking({ thought, rows }) {
  const place = rows.indexOf(thought);
  const before = rows.slice(0, place).findLastIndex((row) => row.event === "thought" && row.slot === thought.slot);
  const during = rows.slice(before + 1, place);
  const call = during.findLast((row) => row.event === "model_called" && row.role !== "talker");
  const tools = during.filter((row) => row.event === "tool_called" && row.slot === thought.slot);
  return html`
    <h3>The thought that led to it</h3>
    <p class="words card">${thought.text}</p>
    <p class="row small soft">
      <span>Thought by ${reasonerOf(thought.slot)}${thought.model && `: ${whoAnswered(thought.model)}`}, ${timeOf(thought.at)}</span>
      ${call && isPage("traces") && html`<a href=${linkTo("traces", { call: call.seq, seq: "" })}>the call of the model</a>`}
    </p>
    <${Briefing} thought=${thought} />
    ${tools.map((row) => html`<${Tool} key=${row.seq} call=${row} gave=${rows.find((each) => each.event === "observed" && each.id === row.id)} />`)}`;
}
