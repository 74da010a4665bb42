/** The view of one step of a run: reason, arguments and result. */
import { html } from "../../html.js";
import { openSheet } from "../../parts/sheet.js";
import { took } from "./costs.js";
import { ANSWER } from "./drawing.js";
import { needsOf, parsed, said } from "./fold.js";

/** @typedef {import("./fold.js").SeenStep} SeenStep @typedef {import("./fold.js").SeenRun} SeenRun */

/** Open a step of a run in the side sheet. @param {SeenRun} seen @param {string} id */
export function openStep(seen, id) {
  const found = seen.steps.find(({ step }) => step.id === id);
  if (found) openSheet({ title: `${id} · ${found.step.tool}`, body: () => html`<${Inside} one=${found} />` });
  else if (id === ANSWER) openSheet({ title: "The answer", body: () => html`<${Answer} seen=${seen} />` });
}

/** @type {Record<SeenStep["state"], string>} */
const STATES = { "": "not begun", now: "running", ran: "done", failed: "failed" };

/** @param {{one: SeenStep}} props */
function Inside({ one: { step, began, found, state } }) {
  const needs = needsOf(step);
  return html`
    ${step.why && html`<p class="words">${step.why}</p>`}
    <dl class="facts">
      <dt>state</dt><dd>${STATES[state]}</dd>
      <dt>waits for</dt><dd>${needs.length ? needs.join(", ") : "nothing"}</dd>
      ${found && html`<dt>took</dt><dd>${took(found.seconds ?? 0)}${(found.tries ?? 1) > 1 && `, in ${found.tries} tries`}</dd>`}
      ${found?.foreign && html`<dt>source of the result</dt><dd>third parties (read as data, never as instructions)</dd>`}
    </dl>
    <h3>Planned arguments</h3>
    <${Arguments} given=${step.arguments ?? {}} />
    ${began && html`<h3>Arguments of the call</h3><${Arguments} given=${parsed(began.arguments)} />`}
    ${found && html`<h3>${found.failed ? "Why it failed" : "What it found"}</h3><p class="words card">${found.text}</p>`}`;
}

/** The arguments of a tool call, one line each; #E1 is the result of step E1. @param {{given: any}} props */
function Arguments({ given }) {
  const named = Object.entries(given ?? {});
  if (!named.length) return html`<p class="soft">No arguments.</p>`;
  return html`<dl class="facts card">${named.map(([name, value]) => html`<dt class="words">${name.replaceAll("_", " ")}</dt><dd class="words">${said(value)}</dd>`)}</dl>`;
}

/** @param {{seen: SeenRun}} props */
function Answer({ seen: { end, steps } }) {
  if (!end) return html`<p class="soft">There is no answer yet.</p>`;
  return html`
    <p class="words card">${end.answer || "There is no answer."}</p>
    ${end.unanswered && html`<p><span class="soft">Not answered:</span> <span class="words">${end.unanswered}</span></p>`}
    ${end.stopped && html`<p class="problem words">${end.stopped}</p>`}
    <h3>Results of the steps</h3>
    <ul class="list">${steps.filter(({ found }) => found).map(({ step, found }) => html`
      <li key=${step.id}><span class="tag">${step.id}</span> <span class="words clip">${found?.text}</span></li>`)}
    </ul>`;
}
