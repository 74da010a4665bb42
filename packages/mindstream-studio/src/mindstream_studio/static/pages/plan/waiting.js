/** Operations that wait for the user's approval (a plan, or a tool call), and those that failed to start. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, useQuery } from "../../api.js";
import { base, user } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { Editor } from "./editor.js";

/** @typedef {import("./shapes.js").Operation} Operation @typedef {import("./shapes.js").Wanted} Wanted @typedef {import("./shapes.js").Plan} Plan */

/** Load the user's operations on plans, newest first; [] for recordings. @returns {Operation[]} */
export function useOperations() {
  const asked = base.value ? null : { path: "/operations" };
  const { data } = useQuery(asked, { on: ["operation"] });
  const found = /** @type {{operations: Operation[]} | undefined} */ (data)?.operations ?? [];
  return found.filter((one) => one.operation.startsWith("plans.") && one.user === user.value);
}

/** @param {{operations: Operation[]}} props */
export function Waiting({ operations }) {
  const waiting = operations.flatMap((one) => one.waits_for.map((wanted) => ({ one, wanted })));
  return html`
    ${waiting.map(({ one, wanted }) => html`
      <section class="card stack" key=${one.id + wanted.id} aria-label=${wanted.what === "plan" ? "A plan waits for your approval" : "A tool call waits for your permission"}>
        ${wanted.what === "plan" ? html`<${PlanWaits} one=${one} wanted=${wanted} />` : html`<${CallWaits} one=${one} wanted=${wanted} />`}
      </section>`)}`;
}

/** @param {Operation} one @param {Wanted} wanted @param {boolean} yes @param {Plan} [plan] */
async function answer(one, wanted, yes, plan) {
  await ask({ path: `/users/{user}/plans/${encodeURIComponent(one.id)}/approve`, body: { yes, id: wanted.id, ...(plan ? { plan } : {}) } });
  askAllAgain();
}

/** @param {{one: Operation, wanted: Wanted}} props */
function PlanWaits({ one, wanted }) {
  const plan = /** @type {Plan} */ (wanted.data.plan ?? {});
  return html`
    <h2>A plan waits for your approval</h2>
    <p class="words">${plan.task}</p>
    <p class="soft small">No step has run yet. You can edit the plan; it runs when you press “Run it”.</p>
    <${Editor} plan=${plan} verb="Run it" run=${(/** @type {Plan} */ now, /** @type {boolean} */ isChanged) => answer(one, wanted, true, isChanged ? now : undefined)}>
      <${Refuse} one=${one} wanted=${wanted} />
    <//>`;
}

/** @param {{one: Operation, wanted: Wanted}} props */
function CallWaits({ one, wanted }) {
  return html`
    <h2>A tool call waits for your permission</h2>
    <p class="words">${wanted.id}: ${wanted.text}.</p>
    <pre class="words mono">${JSON.stringify(wanted.data.arguments ?? {}, null, 1)}</pre>
    ${wanted.data.foreign && html`<p class="problem">The arguments are derived from text of third parties.</p>`}
    <div class="row">
      <button class="main" onClick=${() => answer(one, wanted, true)}>Allow it</button>
      <${Refuse} one=${one} wanted=${wanted} />
    </div>`;
}

/** @param {{one: Operation, wanted: Wanted}} props */
function Refuse({ one, wanted }) {
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  return html`
    <button type="button" class="grave" onClick=${() => answer(one, wanted, false).catch(tell)}>Refuse</button>
    ${problem && html`<${ReadFailure} problem=${problem} />`}`;
}
