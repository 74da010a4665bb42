/** A task with its runs by different strategies: first their cost, then their plans side by side at one moment of the log. */
import { html, useEffect, useState } from "../../html.js";
import { useQuery } from "../../api.js";
import { base, change, seq } from "../../state.js";
import { timeOf } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { Icon } from "../../parts/icons.js";
import { closeSheet } from "../../parts/sheet.js";
import { TimeSlider } from "../../parts/time_slider.js";
import { Comparison } from "./comparison.js";
import { endOf, foldRows } from "./fold.js";
import { MOVING } from "./shapes.js";
import { stateOf } from "./task_list.js";
import { Way } from "./way.js";

/** @typedef {import("./shapes.js").Run} Run @typedef {import("./shapes.js").RunRows} RunRows @typedef {import("./shapes.js").Operation} Operation */
/** @typedef {{run: Run, rows: RunRows["rows"], calls: RunRows["calls"]}} Known a run with its rows */

const A_ROW_MS = 420;

/** @param {{shown: string[], runs: Run[], operations: Operation[]}} props */
export function TaskView({ shown, runs, operations }) {
  const [rows, keep] = useState(/** @type {Record<string, RunRows>} */ ({}));
  useEffect(() => closeSheet, [shown.join()]); // an open side sheet is about runs that are no longer shown
  const there = shown.flatMap((name) => runs.filter(({ run }) => run === name));
  const known = there.flatMap((run) => (rows[run.run] ? [{ ...rows[run.run], run }] : []));
  const coming = operations.filter(({ run, waits_for }) => shown.includes(run) && !waits_for.length && !there.some((each) => each.run === run));
  const task = there[0]?.task ?? "";
  const others = runs.filter((run) => run.task === task && task && !shown.includes(run.run));
  return html`
    <div class="row"><button class="quiet" onClick=${() => change({ runs: "", seq: "" })}><span class="row"><${Icon} name="back" />All tasks</span></button></div>
    ${task && html`<h2 class="words task">${task}</h2>`}
    ${there.map(({ run }) => html`<${RowsOf} key=${run} run=${run} take=${(/** @type {RunRows} */ found) => keep((before) => ({ ...before, [run]: found }))} />`)}
    ${coming.map((one) => html`<${Coming} key=${one.id} one=${one} />`)}
    ${!there.length && !coming.length && !operations.some(({ run }) => shown.includes(run)) && html`<p class="soft">These runs are not in this memory; they may have been forgotten.</p>`}
    ${known.length > 0 && html`<${Ways} known=${/** @type {Known[]} */ (known)} />`}
    ${others.length > 0 && html`<${Others} others=${others} shown=${shown} />`}`;
}

/** Load the rows of one run while the run is shown. @param {{run: string, take: (found: RunRows) => void}} props */
function RowsOf({ run, take }) {
  const { data, problem, again } = useQuery({ path: `/users/{user}/plans/${encodeURIComponent(run)}/rows` }, { on: [...MOVING, "model_called"] });
  useEffect(() => { if (data) take(/** @type {RunRows} */ (data)); }, [data]);
  return problem && html`<${ReadFailure} problem=${problem} again=${again} />`;
}

/** @param {{one: Operation}} props */
function Coming({ one }) {
  const last = one.progress.at(-1)?.text;
  if (one.problem) return html`<p class="problem words" role="alert">${one.problem}</p>`;
  return html`<p class="soft" role="status">The run is starting${last ? html`: <span class="words">${last}</span>` : " …"}</p>`;
}

/** @param {{known: Known[]}} props */
function Ways({ known }) {
  const all = known.flatMap(({ rows }) => rows).sort((a, b) => a.seq - b.seq);
  const [least, most] = [all[0]?.seq ?? 1, all.at(-1)?.seq ?? 1];
  const upto = seq.value === "newest" ? Infinity : seq.value;
  const at = all.findLast((row) => row.seq <= upto);
  const way = known.find(({ rows }) => at && rows.includes(at))?.run.how;
  const label = (/** @type {number} */ row) => (at ? `${known.length > 1 ? `${way}: ` : ""}${momentOf(at)}` : `row ${row}`);
  const seen = known.map(({ run, rows, calls }) => ({ run, calls, seen: foldRows(rows, upto) }));
  return html`
    <${Comparison} seen=${seen} />
    <div class="row moment">
      <${Play} seqs=${all.map((row) => row.seq)} />
      <div class="grow"><${TimeSlider} most=${most} least=${least} label=${label} /></div>
    </div>
    <div class=${known.length > 1 ? "side-by-side" : "stack"}>
      ${seen.map((each) => html`<${Way} key=${each.run.run} one=${each} alone=${known.length === 1} canChange=${!base.value} />`)}
    </div>`;
}

/** Describe a row in a word or two. @param {import("./shapes.js").Row} row */
function momentOf(row) {
  const { event, step, failed } = row;
  if (event === "step_began") return `${step} begins`;
  if (event === "step_found") return failed ? `${step} failed` : `${step} is done`;
  if (event === "solved") return endOf(row);
  return { solving: "begun", run_planned: "planned", answer_missing: "the answer was missing" }[event] ?? "the plan is kept";
}

/** Replay the runs row by row. @param {{seqs: number[]}} props */
function Play({ seqs }) {
  const [playing, set] = useState(false);
  const now = seq.value;
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => {
      const next = seqs.find((each) => each > (now === "newest" ? 0 : now));
      const isLast = next === undefined || next === seqs.at(-1);
      change({ seq: isLast ? "" : next }, { quietly: true });
      if (isLast) set(false);
    }, A_ROW_MS);
    return () => clearTimeout(timer);
  }, [playing, now, seqs.length]);
  return html`
    <button onClick=${() => set(!playing)}><span class="row"><${Icon} name=${playing ? "pause" : "play"} />${playing ? "Pause" : "Play it again"}</span></button>`;
}

/** @param {{others: Run[], shown: string[]}} props */
function Others({ others, shown }) {
  return html`
    <section class="stack" aria-label="Other runs of this task">
      <h3>Other runs of this task</h3>
      <ul class="list">
        ${others.slice().reverse().map((run) => html`
          <li class="row small" key=${run.run}>
            <span class="tag">${run.how}</span><span class="soft">${stateOf(run)}, ${timeOf(run.at)}</span>
            <button class="link" onClick=${() => change({ runs: [...shown, run.run].join(","), seq: "" })} aria-label=${`Compare with the ${run.how} run of ${timeOf(run.at)}`}>compare</button>
          </li>`)}
      </ul>
    </section>`;
}
