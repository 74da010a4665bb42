/** The table that compares the cost and result of each strategy. */
import { html } from "../../html.js";
import { whole } from "../../format.js";
import { Table } from "../../parts/table.js";
import { openSheet } from "../../parts/sheet.js";
import { costOf } from "../../parts/costs.js";
import { Bill, took } from "./costs.js";

/** @typedef {{run: import("./shapes.js").Run, calls: import("./shapes.js").Call[], seen: import("./fold.js").SeenRun}} SeenWay */

/** @param {{seen: SeenWay[]}} props */
export function Comparison({ seen }) {
  /** @param {(spent: import("./shapes.js").Spent) => number} of */
  const least = (of) => {
    const all = seen.flatMap(({ seen: { spent, end } }) => (spent && end ? [of(spent)] : []));
    return all.length > 1 && new Set(all).size > 1 ? Math.min(...all) : NaN;
  };
  const [tokens, seconds] = [least((spent) => spent.tokens), least((spent) => spent.seconds)];
  /** @param {boolean} isLeast @param {string} text */
  const marked = (isLeast, text) => (isLeast ? html`<b>${text}</b> <span class="tag">least</span>` : text);
  /** @type {import("../../parts/table.js").Column<SeenWay>[]} */
  const columns = [
    { title: "Strategy", of: ({ run }) => html`<b>${run.how}</b>` },
    { title: "Cost", numeric: true, of: (one) => html`<${Cost} one=${one} />` },
    { title: "Tokens", numeric: true, of: ({ seen: { spent } }) => marked(spent?.tokens === tokens, whole(spent?.tokens ?? 0)) },
    { title: "Time", numeric: true, of: ({ seen: { spent } }) => marked(spent?.seconds === seconds, took(spent?.seconds ?? 0)) },
    { title: "Model calls", numeric: true, of: ({ seen: { spent } }) => whole(spent?.model_calls ?? 0) },
    { title: "Steps", numeric: true, of: ({ seen: { steps } }) => whole(steps.length) },
  ];
  return html`<section aria-label="Cost of each strategy"><${Table} caption="Cost of each strategy" columns=${columns} rows=${seen} /></section>`;
}

/** @param {{one: SeenWay}} props */
function Cost({ one: { run, seen: { spent }, calls } }) {
  if (!spent) return html`<span class="soft">no cost yet</span>`;
  const open = () => openSheet({ title: `What ${run.how} cost`, body: () => html`<${Bill} spent=${spent} calls=${calls} />` });
  return html`${costOf(spent)} <button class="link small" onClick=${open} aria-haspopup="dialog" aria-label=${`Why ${run.how} cost this`}>why</button>`;
}
