/** The form for a task: choose one or several strategies, and optionally review the plan before it runs. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { change, keepLink } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { Editor } from "./editor.js";
import { readPlan } from "./draft.js";
import { WAYS } from "./shapes.js";

/** @typedef {import("./shapes.js").Plan} Plan */

/** @typedef {import("./shapes.js").Operation} Operation */

const PATIENCE = 50;
const SOON_MS = 60;

/** Show the runs of started operations as soon as they have ids. @param {Promise<Operation>[]} begun */
async function show(begun) {
  const isHere = keepLink();
  const named = await Promise.all(begun.map(async (coming) => {
    const one = await coming;
    let seen = one;
    for (let tries = 0; !seen.run && !seen.problem && tries < PATIENCE; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, SOON_MS));
      seen = /** @type {Operation} */ (await ask({ path: `/operations/${encodeURIComponent(one.id)}` }));
    }
    return seen;
  }));
  if (isHere()) change({ runs: named.map(({ run }) => run).filter(Boolean).join(","), seq: "" });
  askAllAgain();
}

/** Start solving a task by these strategies. @param {string} task @param {string[]} ways @param {boolean} look show the plan before it runs */
export async function solve(task, ways, look) {
  await show(ways.map((how) => /** @type {Promise<Operation>} */ (
    ask({ path: "/users/{user}/plans", body: { task, how, fresh: true, approve: look && how !== "react" } }))));
}

/** Run an existing plan. @param {Plan} plan @param {string} task */
export async function runPlan(plan, task) {
  await show([/** @type {Promise<Operation>} */ (ask({ path: "/users/{user}/plans/run", body: { plan, task } }))]);
}

export function AskForm() {
  const [task, type] = useState("");
  const [ways, choose] = useState(["rewoo"]);
  const [look, setLook] = useState(false);
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const begin = async (event) => {
    event.preventDefault();
    tell(null);
    try {
      await solve(task.trim(), ways, look);
    } catch (error) {
      tell(/** @type {Error} */ (error));
    }
  };
  return html`
    <form class="stack ask" onSubmit=${begin}>
      <label><span>A task</span>
        <textarea rows="2" maxlength="20000" placeholder="Which is longer, the Danube or the Changjiang, and by how much?" value=${task} onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      </label>
      <${WayChoice} ways=${ways} choose=${choose} />
      <div class="row">
        <button class="main" disabled=${!task.trim() || !ways.length}>Solve it</button>
        <label class="row check"><input type="checkbox" checked=${look} onChange=${(/** @type {any} */ event) => setLook(event.target.checked)} /> Show me the plan before it runs</label>
        <${OpenFile} />
      </div>
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </form>`;
}

/** @param {{ways: string[], choose: (ways: string[]) => void}} props */
function WayChoice({ ways, choose }) {
  /** @param {string} name */
  const turn = (name) => choose(ways.includes(name) ? ways.filter((each) => each !== name) : [...ways, name]);
  return html`
    <div class="ways" role="group" aria-label="Strategies to compare">
      ${Object.entries(WAYS).map(([name, about]) => html`
        <label class="way-choice"><input type="checkbox" checked=${ways.includes(name)} onChange=${() => turn(name)} /> <b>${name}</b> <span class="soft small">${about}</span></label>`)}
    </div>`;
}

/** The view of a plan from a file, which can be edited and run. */
function OpenFile() {
  const [opened, open] = useState(/** @type {{plan?: Plan, problem?: Error}} */ ({}));
  /** @param {any} event */
  const read = async (event) => {
    const file = event.target.files?.[0];
    try {
      if (file) open({ plan: readPlan(await file.text()) });
    } catch (error) {
      open({ problem: /** @type {Error} */ (error) });
    }
  };
  return html`
    <label class="file push"><span class="link-like">Open a plan from a file</span><input type="file" accept="application/json,.json" onChange=${read} /></label>
    ${opened.problem && html`<${ReadFailure} problem=${opened.problem} />`}
    ${opened.plan && html`
      <section class="card stack whole" aria-label="The plan of the file">
        <h2 class="words">${opened.plan.task || "A plan without a task"}</h2>
        <${Editor} plan=${opened.plan} verb="Run this plan" run=${(/** @type {Plan} */ plan) => runPlan(plan, plan.task || "Carry out the plan").then(() => open({}))}>
          <button type="button" class="quiet" onClick=${() => open({})}>Leave it</button>
        <//>
      </section>`}`;
}
