/** The memories found by a question, best first, each with a receipt. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { change, params } from "../../state.js";
import { ago, counted, percent } from "../../format.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { Receipt } from "../../parts/receipt.js";
import { Why } from "../../parts/why.js";
import { CHANGING } from "./shapes.js";

/** @typedef {import("./shapes.js").Recalled} Recalled */

const MOST = 20;

/** @param {{query: string, moment: number | undefined}} props */
export function Found({ query, moment }) {
  const body = { query, k: MOST, touch: false, ...(moment === undefined ? {} : { as_of: moment }) };
  const { data, problem, again } = useQuery({ path: "/users/{user}/memories/recall", body }, { on: CHANGING });
  const found = /** @type {{memories: Recalled[], certainty: number, low_confidence: boolean} | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!found) return html`<p class="soft">Searching …</p>`;
  if (!found.memories.length) {
    return html`<${Empty} title="Nothing was found"><p>Ask in other words, or press “All memories”.</p><//>`;
  }
  return html`
    <p class="soft small" role="status">${counted(found.memories.length, "memory", "memories")}, best first. ${found.low_confidence ? "Low confidence: the" : "The"} search is ${percent(found.certainty)} sure that one of them answers the question.</p>
    <ol class="list">${found.memories.map((one) => html`<${FoundOne} key=${one.id} one=${one} />`)}</ol>`;
}

/** @param {{one: Recalled}} props */
function FoundOne({ one: { id, text, kind, confidence, receipt } }) {
  return html`
    <li>
      <button class="item words clip" aria-pressed=${params.value.id === id} onClick=${() => change({ id })}>${text}</button>
      <div class="row small soft">
        <span class="number">confidence ${confidence.toFixed(2)}</span>
        <span class="tag">${kind}</span>
        <span>${ago(receipt.age_s)}</span>
        <${Why} title="Why this memory was found" about=${text}>
          <p class="words card">${text}</p>
          <${Receipt} receipt=${receipt} />
        <//>
      </div>
    </li>`;
}
