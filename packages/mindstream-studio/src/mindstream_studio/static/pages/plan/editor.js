/** The editor of a plan: its steps as form fields, and beside them the graph. */
import { html, useId, useState } from "../../html.js";
import { counted } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { Drawing } from "./drawing.js";
import { differences, readTyped, savePlan, typedOf, withOneMore } from "./draft.js";

/** @typedef {import("./shapes.js").Plan} Plan @typedef {import("./draft.js").Typed} Typed */
/** @typedef {{plan: Plan, verb: string, run: (plan: Plan, isChanged: boolean) => Promise<unknown>, children?: any}} EditorProps */

/** @param {EditorProps} props */
export function Editor({ plan, verb, run, children }) {
  const [typed, type] = useState(() => typedOf(plan));
  const { plan: now, faults } = readTyped(plan.task ?? "", typed);
  const changes = differences(plan, now);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    askChange({ title: `${verb}?`, verb, preview: async () => html`<${Preview} plan=${now} changes=${changes} />`, act: () => run(now, changes.length > 0) });
  };
  return html`
    <form class="stack" onSubmit=${submit}>
      <div class="columns editor">
        <ol class="list" aria-label="Steps">
          ${typed.map((one, at) => html`
            <li key=${one.id}><${StepFields} one=${one} fault=${faults.get(one.id)}
              change=${(/** @type {Partial<Typed>} */ more) => type(typed.map((each, here) => (here === at ? { ...each, ...more } : each)))}
              remove=${() => type(typed.filter((_, here) => here !== at))} /></li>`)}
          <li><button type="button" onClick=${() => type(withOneMore(typed))}>Add a step</button></li>
        </ol>
        <${Drawing} title="The edited plan" steps=${(now.steps ?? []).map((step) => ({ step, state: "" }))} down=${true} draft=${true} />
      </div>
      <div class="row">
        <button class="main" disabled=${!typed.length || faults.size > 0}>${verb}</button>
        <button type="button" onClick=${() => savePlan(now)} disabled=${faults.size > 0}>Save to a file</button>
        ${children}
        ${changes.length > 0 && html`<span class="soft small" role="status">${changes.length === 1 ? "1 step differs" : `${changes.length} steps differ`} from the original plan</span>`}
      </div>
    </form>`;
}

/** @param {{one: Typed, fault: string | undefined, change: (more: Partial<Typed>) => void, remove: () => void}} props */
function StepFields({ one, fault, change, remove }) {
  const id = useId();
  /** @param {keyof Typed} name */
  const take = (name) => (/** @type {any} */ event) => change({ [name]: event.target.value });
  return html`
    <fieldset class="step">
      <legend>${one.id}</legend>
      <div class="row end">
        <label class="grow"><span>Tool</span><input value=${one.tool} onInput=${take("tool")} maxlength="128" /></label>
        <label class="waits"><span>Comes after</span><input value=${one.after} onInput=${take("after")} placeholder="nothing" maxlength="400" /></label>
        <button type="button" class="quiet" onClick=${remove} aria-label=${`Remove ${one.id}`}>Remove</button>
      </div>
      <label><span>Arguments (JSON; ${'{"$ref": "E1"}'} stands for the result of step E1)</span>
        <textarea class="mono" rows="3" spellcheck=${false} value=${one.given} onInput=${take("given")} aria-invalid=${Boolean(fault)} aria-describedby=${fault ? id : undefined} />
      </label>
      ${one.why && html`<p class="soft small words">${one.why}</p>`}
      ${fault && html`<p class="problem small" id=${id}>${fault}</p>`}
    </fieldset>`;
}

/** @param {{plan: Plan, changes: string[]}} props */
function Preview({ plan, changes }) {
  const tools = [...new Set((plan.steps ?? []).map(({ tool }) => tool))];
  return html`
    ${plan.task && html`<p class="words card">${plan.task}</p>`}
    <p>${counted((plan.steps ?? []).length, "step")} will run${tools.length > 0 ? `. Tools: ${tools.join(", ")}` : ""}. Steps may call models, which may cost money.</p>
    ${changes.length ? html`<p>Changes to the original plan:</p><ul class="list">${changes.map((each) => html`<li class="words small">${each}</li>`)}</ul>` : html`<p class="soft">The plan is unchanged.</p>`}`;
}
