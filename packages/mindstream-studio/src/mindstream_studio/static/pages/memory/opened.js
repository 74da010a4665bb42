/** The view of one memory: its text, its origin, and the memories and messages that it is based on. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { change, linkTo } from "../../state.js";
import { timeOf } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { useInView } from "../../parts/in_view.js";
import { Icon } from "../../parts/icons.js";
import { Graph } from "../../parts/graph.js";
import { CHANGING, STATES } from "./shapes.js";
import { Care } from "./care.js";
import { Strength } from "./strength.js";

/** @typedef {import("./shapes.js").Lineage} Lineage @typedef {import("./shapes.js").Memory} Memory */

const MOST_DRAWN = 24;

/** @param {string} id @param {string} what */
const pathOf = (id, what) => `/users/{user}/memories/${encodeURIComponent(id)}/${what}`;

/** @param {{id: string}} props */
export function Opened({ id }) {
  const { data, problem, again } = useQuery({ path: pathOf(id, "lineage") }, { on: CHANGING });
  const lineage = /** @type {Lineage | undefined} */ (data);
  const place = useInView(Boolean(lineage || problem));
  /** @param {KeyboardEvent} event */
  const leave = (event) => { if (event.key === "Escape") change({ id: "" }); };
  return html`
    <aside class="stack opened" ref=${place} tabindex="-1" aria-label="The opened memory" onKeyDown=${leave}>
      <div class="row"><h2>This memory</h2><button class="quiet icon push" aria-label="Close" onClick=${() => change({ id: "" })}><${Icon} name="close" /></button></div>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${lineage && html`<${Inside} lineage=${lineage} />`}
    </aside>`;
}

/** @param {{lineage: Lineage}} props */
function Inside({ lineage: { memory, from, into, cut } }) {
  return html`
    <p class="words card">${memory.text}</p>
    <${Facts} memory=${memory} />
    <${Care} memory=${memory} />
    <h3>What it is based on</h3>
    ${from.length ? html`<${Rests} memory=${memory} from=${from} />` : html`<p class="soft">It is not based on other records in this memory.</p>`}
    ${into.length > 0 && html`<h3>What is derived from it</h3><${Lines} memories=${into} />`}
    <${Wordings} id=${memory.id} />
    <${Strength} id=${memory.id} status=${memory.status} />
    ${cut && html`<p class="soft small">Not all records are shown.</p>`}`;
}

/** @param {{memory: Memory}} props */
function Facts({ memory }) {
  const talk = memory.seq > 0 && memory.kind === "chat" && isPage("talk");
  return html`
    <dl class="facts">
      <dt>kind</dt><dd>${memory.kind}</dd>
      <dt>written</dt><dd>${timeOf(memory.created)}</dd>
      ${memory.by && html`<dt>by</dt><dd>${memory.by}</dd>`}
      ${memory.session && html`<dt>in the conversation</dt><dd>${talk ? html`<a href=${linkTo("talk", { talk: memory.session, seq: memory.seq })}>${memory.session}</a>` : memory.session}</dd>`}
      ${memory.importance !== null && html`<dt>importance</dt><dd>${memory.importance} of 10</dd>`}
      <dt>state</dt><dd>${STATES[memory.status] ?? memory.status}</dd>
      <${Calls} seq=${memory.seq} />
    </dl>`;
}

/** Links to the model calls about the log row that the memory comes from. @param {{seq: number}} props */
function Calls({ seq }) {
  const { data } = useQuery(seq > 0 && isPage("traces") ? { path: "/users/{user}/calls", query: { about: seq, limit: 5 } } : null);
  const calls = /** @type {{calls: {seq: number, prompt: string}[]} | undefined} */ (data)?.calls ?? [];
  if (!calls.length) return null;
  return html`
    <dt>model calls</dt>
    <dd class="row">${calls.map((one) => html`<a href=${linkTo("traces", { call: one.seq })}>${one.prompt || `row ${one.seq}`}</a>`)}</dd>`;
}

/** @param {{memories: Memory[]}} props */
function Lines({ memories }) {
  return html`
    <ul class="list">
      ${memories.map(({ id, text, kind }) => html`
        <li key=${id}><button class="item words clip" onClick=${() => change({ id })}>${text}</button> <span class="tag">${kind}</span></li>`)}
    </ul>`;
}

/** @param {{memory: Memory, from: Memory[]}} props */
function Rests({ memory, from }) {
  if (from.length > MOST_DRAWN) return html`<${Lines} memories=${from} />`;
  const all = [...from, memory];
  const nodes = all.map(({ id, text, kind }) => ({ id, text, note: kind, state: /** @type {"now" | ""} */ (id === memory.id ? "now" : "") }));
  const edges = all.flatMap(({ id, derived_from }) => derived_from.map((each) => ({ from: each, to: id })));
  return html`
    <${Graph} title="What it is based on" nodes=${nodes} edges=${edges} down=${true} onOpen=${(/** @type {string} */ id) => change({ id })}
      words="From the original records at the top down to this memory. Each box can be opened." />`;
}

/** The earlier wordings of a corrected memory. @param {{id: string}} props */
function Wordings({ id }) {
  const { data } = useQuery({ path: pathOf(id, "history") }, { on: ["corrected"] });
  const wordings = /** @type {{memories: Memory[]} | undefined} */ (data)?.memories ?? [];
  if (wordings.length < 2) return null;
  return html`
    <h3>Its versions</h3>
    <ol class="list">
      ${wordings.map((each) => html`
        <li key=${each.id}>
          <button class="item words clip" aria-pressed=${each.id === id} onClick=${() => change({ id: each.id })}>${each.text}</button>
          <span class="small soft">${timeOf(each.created)}${each.status === "holds" ? ", current" : ""}</span>
        </li>`)}
    </ol>`;
}
