/** The plan at a moment: its steps, those that are new or moved since the version before, and the reasons. */
import { html } from "../../html.js";
import { clockOf } from "../../format.js";
import { Why } from "../../parts/why.js";
import { WhyBelieved } from "./why_believed.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./believed.js").Plan} Plan */

/** @param {{plan: Plan, rows: Row[], from: number}} props */
export function PlanNow({ plan: { version, seq, at, changed, steps }, rows, from }) {
  const isOurs = seq >= from;
  return html`
    <section class="stack">
      <h2>The plan <small class="soft">version ${version}, ${clockOf(at)}</small></h2>
      ${changed && html`<p class="small soft words">${changed}</p>`}
      <ol class="plan">
        ${steps.map(({ head, rest, isNew }) => html`
          <li key=${head}>
            ${rest ? html`<details><summary><${Head} head=${head} fresh=${isOurs && isNew} /></summary><p class="small words">${rest}</p></details>` : html`<${Head} head=${head} fresh=${isOurs && isNew} />`}
          </li>`)}
      </ol>
      <p class="small soft">Derived from the conversation. <${Why} title="What this plan is based on" about="the plan"><${WhyBelieved} text=${steps.map(({ head }) => head).join("\n")} since=${seq} rows=${rows} /><//></p>
    </section>`;
}

/** @param {{head: string, fresh: boolean}} props */
function Head({ head, fresh }) {
  return html`<span class=${fresh ? "words fresh" : "words"}>${head}</span>${fresh && html` <small class="soft">new or moved</small>`}`;
}
