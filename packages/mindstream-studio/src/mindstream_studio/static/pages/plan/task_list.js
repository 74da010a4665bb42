/** The solved tasks, newest first, with strategies, answers and costs. */
import { html } from "../../html.js";
import { base, change } from "../../state.js";
import { timeOf } from "../../format.js";
import { Empty } from "../../parts/empty.js";
import { Took } from "./costs.js";
import { endOf } from "./fold.js";
import { WAYS } from "./shapes.js";

/** @typedef {import("./shapes.js").Run} Run */

/** Group runs by task: the newest task first, and in it the newest run first. @param {Run[]} runs @returns {Run[][]} */
export function tasksOf(runs) {
  /** @type {Map<string, Run[]>} */
  const found = new Map();
  for (const run of [...runs].sort((a, b) => b.at - a.at)) found.set(run.task, [...(found.get(run.task) ?? []), run]);
  return [...found.values()];
}

const ORDER = Object.keys(WAYS);

/** Return the newest run of each strategy, in the order of the strategies. @param {Run[]} runs newest first @returns {Run[]} */
export function newestOfEach(runs) {
  const newest = runs.filter((run, at) => runs.findIndex(({ how }) => how === run.how) === at);
  return newest.sort((a, b) => ORDER.indexOf(a.how) - ORDER.indexOf(b.how));
}

/** @param {{runs: Run[]}} props */
export function TaskList({ runs }) {
  if (!runs.length) return html`<${Nothing} />`;
  return html`
    <section class="stack" aria-label="Tasks">
      <h2>Tasks</h2>
      <ol class="list">${tasksOf(runs).map((ofTask) => html`<${TaskLine} key=${ofTask[0]?.run} runs=${ofTask} />`)}</ol>
    </section>`;
}

/** @param {{runs: Run[]}} props */
function TaskLine({ runs }) {
  const ways = newestOfEach(runs);
  const open = () => change({ runs: ways.map(({ run }) => run).join(","), seq: "" });
  return html`
    <li class="stack tight">
      <button class="item words clip" onClick=${open}>${runs[0]?.task || "A task whose text was deleted"}</button>
      ${ways.map((run) => html`
        <div class="row small soft" key=${run.run}>
          <button class="link" onClick=${() => change({ runs: run.run, seq: "" })}>${run.how}</button>
          <${Took} spent=${run.spent} />
          <span>${stateOf(run)}</span>
          <span>${timeOf(run.at)}</span>
        </div>`)}
      ${runs[0]?.answer && html`<p class="words clip">${runs[0].answer}</p>`}
    </li>`;
}

/** @param {Run} run */
export function stateOf(run) {
  if (run.state === "running") return "running";
  return run.state === "waiting" ? "waits for you" : endOf(run);
}

function Nothing() {
  return html`
    <${Empty} title="Nothing has been solved yet">
      ${base.value
        ? html`<p>This recording contains no plan.</p>`
        : html`<p>Write a task above: its plan appears here, and shows each step as it runs.</p>`}
    <//>`;
}
