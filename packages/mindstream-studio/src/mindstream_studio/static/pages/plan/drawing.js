/** A plan as a graph of its steps and the answer; running steps are highlighted. */
import { html } from "../../html.js";
import { Graph } from "../../parts/graph.js";
import { counted } from "../../format.js";
import { endOf, needsOf, said } from "./fold.js";

/** @typedef {import("./fold.js").SeenStep} SeenStep @typedef {import("./shapes.js").Row} Row */

export const ANSWER = "answer";

/** @param {SeenStep[]} steps @param {Row | null} end @param {boolean} withAnswer */
function graphOf(steps, end, withAnswer) {
  const nodes = steps.map(({ step, state }) => ({ id: step.id, note: `${step.id} · ${step.tool}`, text: said(step.arguments ?? {}) || "no arguments", state }));
  const edges = steps.flatMap(({ step }) => needsOf(step).map((from) => ({ from, to: step.id })));
  if (withAnswer && steps.length) {
    const needed = new Set(edges.map(({ from }) => from));
    edges.push(...steps.filter(({ step }) => !needed.has(step.id)).map(({ step }) => ({ from: step.id, to: ANSWER })));
    nodes.push({ id: ANSWER, note: "answer", text: end ? end.answer || end.stopped || "none" : "not yet", state: end ? (end.answer ? "ran" : "failed") : "" });
  }
  return { nodes, edges };
}

/** Return the progress in words. @param {SeenStep[]} steps @param {Row | null} end */
function far(steps, end) {
  const now = steps.filter(({ state }) => state === "now").map(({ step }) => step.id);
  const done = steps.filter(({ state }) => state === "ran" || state === "failed").length;
  const failed = steps.filter(({ state }) => state === "failed").map(({ step }) => step.id);
  const words = [`${done} of ${counted(steps.length, "step")} done`];
  if (now.length) words.push(`running: ${now.join(" and ")}`);
  if (failed.length) words.push(`failed: ${failed.join(" and ")}`);
  if (end) words.push(endOf(end));
  return `${words.join(", ")}.`;
}

/**
 * @param {{title: string, steps: SeenStep[], end?: Row | null, down?: boolean, draft?: boolean, onOpen?: (id: string) => void}} props
 *   `draft`: the plan has not been run
 */
export function Drawing({ title, steps, end = null, down = false, draft = false, onOpen }) {
  const { nodes, edges } = graphOf(steps, end, !draft);
  if (!nodes.length) return html`<p class="soft">No step yet.</p>`;
  const words = draft ? `${counted(steps.length, "step")}; steps on the left, or above, run first.` : far(steps, end);
  return html`<div class=${draft ? "drawing draft" : "drawing"}><${Graph} title=${title} nodes=${nodes} edges=${edges} down=${down} slim=${down} onOpen=${onOpen} words=${words} /></div>`;
}
