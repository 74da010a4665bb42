/** One memory, opened: what it says, how it came about, what it rests on down to what was said. */
import { html, useEffect, useRef } from "../../html.js";
import { useQuery } from "../../api.js";
import { change } from "../../state.js";
import { timeOf } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { Icon } from "../../parts/icons.js";
import { Graph } from "../../parts/graph.js";
import { CHANGING } from "./shapes.js";
import { Strength } from "./strength.js";
import { Care } from "./care.js";

/** @typedef {import("./shapes.js").Lineage} Lineage @typedef {import("./shapes.js").Memory} Memory */

/** @param {{id: string}} props */
export function Opened({ id }) {
  const { data, problem, again } = useQuery({ path: `/users/{user}/memories/${encodeURIComponent(id)}/lineage` }, { on: CHANGING });
  const lineage = /** @type {Lineage | undefined} */ (data);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { place.current?.focus({ preventScroll: true }); place.current?.scrollIntoView({ block: "nearest" }); }, []);
  return html`
    <aside class="stack opened" ref=${place} tabindex="-1" aria-label="The memory that is open">
      <div class="row"><h2>This memory</h2><button class="quiet icon push" aria-label="Close" onClick=${() => change({ id: "" })}><${Icon} name="close" /></button></div>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${lineage && html`<${Inside} lineage=${lineage} />`}
    </aside>`;
}

/** @param {{lineage: Lineage}} props */
function Inside({ lineage: { memory, from, into, cut } }) {
  return html`
    <p class="words card">${memory.text}</p>
    <dl class="facts">
      <dt>kind</dt><dd>${memory.kind}</dd>
      <dt>written</dt><dd>${timeOf(memory.created)}</dd>
      ${memory.by && html`<dt>by</dt><dd>${memory.by}</dd>`}
      ${memory.session && html`<dt>in the talk</dt><dd>${memory.session}</dd>`}
      ${memory.importance !== null && html`<dt>importance</dt><dd>${memory.importance} of 10</dd>`}
      <dt>state</dt><dd>${memory.status}</dd>
    </dl>
    <${Care} memory=${memory} />
    <h3>What it rests on</h3>
    <${Lines} memories=${from} none="On nothing else: it was said or written down as it stands." />
    ${into.length > 0 && html`<h3>What was drawn from it</h3><${Lines} memories=${into} none="" />`}
    ${from.length > 0 && html`<${Rests} memory=${memory} from=${from} />`}
    <${Strength} id=${memory.id} />
    ${cut && html`<p class="soft small">There is more than is shown.</p>`}`;
}

/** @param {{memories: Memory[], none: string}} props */
function Lines({ memories, none }) {
  if (!memories.length) return html`<p class="soft">${none}</p>`;
  return html`
    <ul class="list">
      ${memories.map(({ id, text, kind }) => html`
        <li key=${id}><button class="item words clip" onClick=${() => change({ id })}>${text}</button> <span class="tag">${kind}</span></li>`)}
    </ul>`;
}

/** @param {{memory: Memory, from: Memory[]}} props */
function Rests({ memory, from }) {
  const nodes = [...from, memory].map(({ id, text, kind }) => ({ id, text, note: kind, state: /** @type {"now" | ""} */ (id === memory.id ? "now" : "") }));
  const edges = from.map(({ id }) => ({ from: id, to: memory.id }));
  return html`<${Graph} title="What it rests on" nodes=${nodes} edges=${edges} down=${true} onOpen=${(/** @type {string} */ id) => change({ id })} words="From what was said, above, to this memory, below." />`;
}
