/** A belief at a moment: fields that have just changed are marked, and each value has a button with its reasons. */
import { html } from "../../html.js";
import { Why } from "../../parts/why.js";
import { WhyBelieved } from "./why_believed.js";
import { plain, spaced } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./believed.js").Belief} Belief @typedef {import("./believed.js").Field} Field */

/** @param {{belief: Belief, rows: Row[], from: number}} props */
export function BeliefNow({ belief: { version, seq, fields }, rows, from }) {
  const shown = [...fields.values()].filter(({ items, gone }) => items.length || gone.length);
  const changed = seq >= from ? seq : -1;
  return html`
    <section class="stack">
      <h2>What it believes <small class="soft">version ${version}</small></h2>
      <dl class="facts belief">
        ${shown.map((field) => html`<dt>${spaced(field.name)}</dt><dd><${Items} field=${field} changed=${changed} rows=${rows} /></dd>`)}
      </dl>
    </section>`;
}

/** @param {{field: Field, changed: number, rows: Row[]}} props */
function Items({ field: { items, gone }, changed, rows }) {
  return html`
    <ul>
      ${items.map(({ value, since }) => html`
        <li key=${plain(value)}>
          <span class=${since === changed ? "words fresh" : "words"}>${plain(value)}</span>
          ${since === changed && html` <small class="soft">new</small>`}${" "}
          <${Why} title="What this belief is based on" about=${plain(value)}><${WhyBelieved} text=${plain(value)} since=${since} rows=${rows} /><//>
        </li>`)}
      ${changed > 0 && gone.map((value) => html`<li key=${`gone ${plain(value)}`}><del class="words soft">${plain(value)}</del> <small class="soft">no longer</small></li>`)}
    </ul>`;
}
