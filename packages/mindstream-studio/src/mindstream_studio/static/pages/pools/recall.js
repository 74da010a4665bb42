/** The examples that a pool recalls for a question, before and after it learned a ranking. */
import { html, useEffect, useState } from "../../html.js";
import { useQuery } from "../../api.js";
import { change, params } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { pathOf } from "./shapes.js";

/** @typedef {import("./shapes.js").Exemplar} Exemplar @typedef {import("./shapes.js").Details} Details */

const MOST = 5;

/** @param {{pool: string, details: Details}} props */
export function Recall({ pool, details: { versions } }) {
  const asked = params.value.q ?? "";
  const [typed, type] = useState(asked);
  useEffect(() => type(asked), [asked]);
  /** @param {Event} event */
  const search = (event) => { event.preventDefault(); change({ q: typed.trim() }); };
  return html`
    <form class="row" role="search" onSubmit=${search}>
      <input class="grow" type="search" aria-label="A question" placeholder="A question similar to those in the pool" value=${typed} maxlength="10000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button class="main">Recall</button>
    </form>
    ${!versions.length && html`<p class="soft small">This pool has not learned a ranking yet, so both lists are equal. Learning starts at 36 pairs.</p>`}
    ${asked ? html`<${BothSides} pool=${pool} query=${asked} />` : html`<p class="soft">Enter a question: the examples that an agent would be shown for it are listed here, with the ranking before the pool learned and with the current one.</p>`}`;
}

/** @param {{pool: string, query: string}} props */
function BothSides({ pool, query }) {
  const path = `${pathOf(pool)}/recall`;
  const before = useQuery({ path, body: { query, k: MOST, untrained: true } });
  const now = useQuery({ path, body: { query, k: MOST } });
  const problem = before.problem ?? now.problem;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${() => { before.again(); now.again(); }} />`;
  const [first, then] = [before, now].map(({ data }) => /** @type {{exemplars: Exemplar[]} | undefined} */ (data)?.exemplars);
  if (!first || !then) return html`<p class="soft" role="status">Searching …</p>`;
  return html`
    <div class="both">
      <${Side} title="Ranking before learning" exemplars=${first} />
      <${Side} title="Current ranking" exemplars=${then} before=${first.map(({ id }) => id)} />
    </div>`;
}

/** Describe an example's earlier rank. @param {number} at @param {number} was -1: it was not among the examples */
function moved(at, was) {
  if (was === at) return "same rank";
  if (was < 0) return "new in the list";
  return was > at ? `up from ${was + 1}` : `down from ${was + 1}`;
}

/** @param {{title: string, exemplars: Exemplar[], before?: string[]}} props */
function Side({ title, exemplars, before }) {
  return html`
    <section class="stack" aria-label=${title}>
      <h3>${title}</h3>
      ${!exemplars.length && html`<p class="soft">No example is recalled for you.</p>`}
      <ol class="list">
        ${exemplars.map(({ id, query, answer, writer }, at) => html`
          <li key=${id} class="stack tight">
            <p class="words"><b>${at + 1}. ${query}</b></p>
            <p class="words clip">${answer}</p>
            <p class="soft small">by ${writer}${before && `, ${moved(at, before.indexOf(id))}`}</p>
          </li>`)}
      </ol>
    </section>`;
}
