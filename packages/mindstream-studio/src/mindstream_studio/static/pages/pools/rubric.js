/** The rubric by which a pool grades answers. */
import { html, useState } from "../../html.js";
import { Empty } from "../../parts/empty.js";
import { Bar } from "../../parts/receipt.js";

/** @typedef {import("./shapes.js").Details} Details */

/** @param {{pool: string, details: Details}} props */
export function RubricView({ pool, details: { rubrics } }) {
  const [chosen, choose] = useState(0);
  const rubric = rubrics[(chosen || rubrics.length) - 1];
  if (!rubric) {
    return html`<${Empty} title="No rubric is frozen">
      <p>A rubric lists the criteria for grading answers. Until the pool’s owner freezes a rubric, no member can offer pairs; only the owner can add them by hand. Draft one with this command, then edit and freeze it:</p>
      <p class="mono">mindstream pool rubric ${pool} --draft rubric.toml</p>
    <//>`;
  }
  const most = Math.max(...rubric.criteria.map(({ points }) => points));
  return html`
    ${rubrics.length > 1 && html`
      <div class="row" role="group" aria-label="Version of the rubric">
        ${rubrics.map(({ version }) => html`<button key=${version} aria-pressed=${version === rubric.version} onClick=${() => choose(version)}>Version ${version}</button>`)}
      </div>`}
    <p>To be let in, a pair (a question with its answer) needs at least <b>${rubric.threshold}</b> of 100 points.</p>
    <ol class="list" aria-label="Criteria">
      ${rubric.criteria.map(({ name, points, asks, others }) => html`
        <li key=${name} class="criterion">
          <h3 class="words">${name} ${others && html`<span class="tag">worth to others</span>`}</h3>
          <span class="number soft small">up to ${points}</span>
          <div class="share"><${Bar} value=${points} most=${most} /></div>
          <p class="words">${asks}</p>
        </li>`)}
    </ol>`;
}
