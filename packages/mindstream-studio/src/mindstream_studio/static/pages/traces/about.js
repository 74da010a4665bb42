/** The purpose of a model call: the log rows that it is about, with links, and the rows that resulted. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { change, linkTo, params } from "../../state.js";
import { clockOf, timeOf } from "../../format.js";
import { inWords, took } from "../talk/words.js";

/** @typedef {import("./shapes.js").Call} Call @typedef {import("./shapes.js").Row} Row */

/** @param {{call: Call, rows: Row[]}} props */
export function About({ call, rows }) {
  if (params.value.town) return html`<${OfTown} call=${call} />`;
  if (!rows.length) return html`<p class="soft">This call belongs to no single row of the log: it served a whole activity, such as a sleep or the start of the mind.</p>`;
  return html`<ul class="list">${rows.map((row) => html`<${One} key=${row.seq} row=${row} call=${call} />`)}</ul>`;
}

/** @param {{call: Call}} props */
function OfTown({ call: { resident, step } }) {
  const town = params.value.town ?? "";
  if (step === null) return html`<p class="soft">The call served the town as a whole, not one resident.</p>`;
  const frame = linkTo("town", { town, ...(resident && { who: resident }), t: step, seq: "" });
  return html`
    <p>${resident || "The town"}, at step ${step}.</p>
    <p class="row small">
      ${isPage("town") && html`<a href=${frame}>the town at that moment</a>`}
      <button class="link" onClick=${() => change({ resident, step, role: "", day: "", failed: "" })}>all calls of ${resident || "the town"} at that step</button>
    </p>`;
}

/** @param {{row: Row, call: Call}} props */
function One({ row, call }) {
  const text = String(row.text ?? row.task ?? "");
  return html`
    <li class="stack tight">
      ${text && html`<p class="words clip">${text}</p>`}
      <p class="row small soft">
        <span>${whatIs(row)}, ${timeOf(row.at)}</span>
        <${Places} row=${row} call=${call} />
      </p>
    </li>`;
}

/** @param {Row} row */
function whatIs(row) {
  if (row.event === "heard") return `what ${row.by || row.user} said`;
  if (row.event === "solving") return "a task";
  return inWords(row).replaceAll("_", " ");
}

/** Links to the pages that show a row. @param {{row: Row, call: Call}} props */
function Places({ row, call }) {
  const { event, session, record, run } = row;
  return html`
    ${event === "heard" && isPage("talk") && html`<a href=${linkTo("talk", { talk: session, seq: call.seq })}>the talk as it stood then</a>`}
    ${record && isPage("memory") && html`<a href=${linkTo("memory", { id: record, seq: "" })}>in memory</a>`}
    ${run && isPage("plan") && html`<a href=${linkTo("plan", { runs: run, seq: "" })}>the plan</a>`}
    <button class="link" onClick=${() => change({ about: row.seq, role: "", day: "", failed: "" })}>all calls for it</button>`;
}

/** Kinds of rows that are not listed as results. */
const PASSED = ["opened"];

/** The rows that resulted from the same utterance; calls among them can be opened. @param {{row: Row, call: Call}} props */
export function CameOfIt({ row, call }) {
  const { data } = useQuery(row.event === "heard" ? { path: `/users/{user}/traces/${row.seq}` } : null, { on: ["model_called", "thought"] });
  const rows = /** @type {{rows: Row[]} | undefined} */ (data)?.rows.filter(({ event }) => !PASSED.includes(event)) ?? [];
  if (!rows.length) return null;
  return html`
    <h3>All that resulted from this message</h3>
    <ol class="small chain">
      ${rows.map((each) => html`
        <li key=${each.seq}>
          <span class="soft number">${clockOf(each.at)}</span>
          ${each.event === "model_called" && each.seq !== call.seq
            ? html`<a href=${linkTo("traces", { call: each.seq })}>${inWords(each)}</a>`
            : html`<span aria-current=${each.seq === call.seq ? "true" : undefined}>${inWords(each)}${each.seq === call.seq ? ": this call" : ""}</span>`}
          <span class="soft number">${sinceOf(each, row)}</span>
        </li>`)}
    </ol>`;
}

/** @param {Row} row @param {Row} first */
const sinceOf = (row, first) => (row.at > first.at ? `after ${took(row.at - first.at)}` : "");
