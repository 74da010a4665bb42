/** One run of a task: its plan with progress, its answer, and buttons to repeat or edit it. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { seq } from "../../state.js";
import { askChange } from "../../parts/dialog.js";
import { ReadFailure } from "../../parts/failure.js";
import { runPlan, solve } from "./ask.js";
import { savePlan } from "./draft.js";
import { Drawing } from "./drawing.js";
import { Editor } from "./editor.js";
import { endOf } from "./fold.js";
import { openStep } from "./step.js";

/** @typedef {import("./comparison.js").SeenWay} SeenWay @typedef {import("./shapes.js").Plan} Plan */

/** Return the state of a run at the shown moment. @param {SeenWay} one */
function stateOf({ run, seen }) {
  if (seen.end) return endOf(seen.end);
  if (seq.value !== "newest") return seen.plan ? "under way" : "planning";
  return run.state === "running" ? "running" : run.state === "waiting" ? "waits for you" : "stopped";
}

/** @param {{one: SeenWay, alone: boolean, canChange: boolean}} props */
export function Way({ one, alone, canChange }) {
  const { run, seen } = one;
  return html`
    <section class="stack way" aria-label=${`Run of the strategy ${run.how}`}>
      <div class="row"><h3>${run.how}</h3><span class="soft small">${stateOf(one)}</span></div>
      <${Drawing} title=${`Plan of the strategy ${run.how}`} steps=${seen.steps} end=${seen.end} down=${!alone} onOpen=${(/** @type {string} */ id) => openStep(seen, id)} />
      ${seen.because.map((text) => html`<p class="soft small">${text}</p>`)}
      ${seen.end && html`<${End} end=${seen.end} />`}
      ${canChange && html`<${Next} one=${one} />`}
    </section>`;
}

/** @param {{end: import("./shapes.js").Row}} props */
function End({ end }) {
  return html`
    ${end.answer && html`<p class="words card answer">${end.answer}</p>`}
    ${end.unanswered && html`<p class="small"><span class="soft">Not answered:</span> <span class="words">${end.unanswered}</span></p>`}
    ${end.stopped && html`<p class="problem small words">${end.stopped}</p>`}`;
}

/** Scroll an element to the top when it is mounted. @param {HTMLElement | null} opened */
const scrollToTop = (opened) => opened?.scrollIntoView({ block: "start" });

/** @param {{one: SeenWay}} props */
function Next({ one: { run, seen } }) {
  const [editing, edit] = useState(false);
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const path = `/users/{user}/plans/${encodeURIComponent(run.run)}`;
  /** @param {string} verb */
  const act = (verb) => ask({ path: `${path}/${verb}`, body: {} }).then(askAllAgain, tell);
  const plan = /** @type {Plan} */ ({ task: run.task, steps: seen.steps.map(({ step }) => step) });
  const again = () => askChange({
    title: "Solve it again?", verb: "Solve the task again",
    preview: async () => html`<p class="words card">${run.task}</p><p>The task is solved again with the strategy ${run.how}. This run is kept for comparison.</p>`,
    act: () => solve(run.task, [run.how], false),
  });
  const goes = Boolean(run.operation);
  return html`
    <div class="row">
      ${goes && html`<button onClick=${() => act("stop")}>Stop</button>`}
      ${!goes && !run.answer && html`<button onClick=${() => act("resume")}>Resume</button>`}
      ${!goes && html`<button onClick=${again}>Solve it again</button>`}
      ${seen.steps.length > 0 && html`
        <button class="link small" aria-expanded=${editing} onClick=${() => edit(!editing)}>Edit and run this plan</button>
        <button class="link small" onClick=${() => savePlan(plan)}>Save it to a file</button>`}
    </div>
    ${problem && html`<${ReadFailure} problem=${problem} />`}
    ${editing && html`<div ref=${scrollToTop}><${Editor} plan=${plan} verb="Run this plan" run=${(/** @type {Plan} */ now) => runPlan(now, run.task)} /></div>`}`;
}
