/** The page Pools: shared examples, the rubric that admits or rejects them, lessons learned, and trusted sources. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { base, change, linkTo, params } from "../state.js";
import { counted } from "../format.js";
import { Empty } from "../parts/empty.js";
import { ReadFailure } from "../parts/failure.js";
import { Head } from "../parts/shell.js";
import { Create } from "./pools/create.js";
import { Lessons } from "./pools/lessons.js";
import { Learning } from "./pools/learning.js";
import { Pairs } from "./pools/pairs.js";
import { Recall } from "./pools/recall.js";
import { RubricView } from "./pools/rubric.js";
import { pathOf } from "./pools/shapes.js";
import { Trust } from "./pools/trust.js";

/** @typedef {import("./pools/shapes.js").Pool} Pool @typedef {import("./pools/shapes.js").Details} Details */

/** @type {[string, string, (props: {pool: string, details: Details}) => any][]} */
const TABS = [
  ["pairs", "Let in and refused", Pairs], ["rubric", "Rubric", RubricView], ["lessons", "Lessons", Lessons], ["learning", "Learning", Learning],
  ["recall", "Recall", Recall], ["trust", "Trust", Trust],
];

export function Page() {
  const { data, problem, again } = useQuery({ path: "/users/{user}/pools" });
  const pools = /** @type {{pools: Pool[]} | undefined} */ (data)?.pools;
  const shown = pools?.find(({ pool }) => pool === params.value.pool) ?? pools?.[0];
  return html`
    <div class="page pools-page">
      <${Head} title="Pools">What agents share: lessons learned from verdicts on their answers, and good answers, which are shown as examples with later questions.<//>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${pools && !pools.length && html`<${Nothing} />`}
      ${pools && pools.length > 1 && html`<${Choice} pools=${pools} shown=${shown?.pool ?? ""} />`}
      ${shown && html`<${PoolView} key=${shown.pool} pool=${shown} />`}
      ${shown && !base.value && html`<details key=${`another than ${shown.pool}`}><summary>Begin another pool</summary><${Create} /></details>`}
    </div>`;
}

/** @param {{pools: Pool[], shown: string}} props */
function Choice({ pools, shown }) {
  return html`
    <div class="row" role="group" aria-label="Which pool">
      ${pools.map(({ pool }) => html`<button key=${pool} aria-pressed=${pool === shown} onClick=${() => change({ pool, pair: "" })}>${pool}</button>`)}
    </div>`;
}

/** @param {{pool: Pool}} props */
function PoolView({ pool }) {
  const { data, problem, again } = useQuery({ path: `${pathOf(pool.pool)}/details` });
  const details = /** @type {Details | undefined} */ (data);
  const [name, , Shown] = TABS.find(([each]) => each === params.value.show) ?? /** @type {typeof TABS[0]} */ (TABS[0]);
  return html`
    <section class="stack" aria-label=${`The pool ${pool.pool}`}>
      <h2 class="words">${pool.domain || pool.pool}</h2>
      <p class="soft small">${pool.pool}, ${pool.owner}’s; ${counted(pool.exemplars, "pair")} offered; open to ${pool.members.includes("*") ? "all users" : pool.members.join(", ")}</p>
    </section>
    <${Tabs} now=${name} />
    ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
    ${details && html`<section class="stack" role="tabpanel" id="pool-panel" aria-labelledby=${`tab-${name}`} tabindex="0"><${Shown} pool=${pool.pool} details=${details} /></section>`}`;
}

/** @param {{now: string}} props */
function Tabs({ now }) {
  /** @param {KeyboardEvent} event */
  const walk = (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = TABS[(TABS.findIndex(([each]) => each === now) + step + TABS.length) % TABS.length];
    if (!step || !next) return;
    event.preventDefault();
    change({ show: next[0] });
    document.getElementById(`tab-${next[0]}`)?.focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label="Views of this pool" onKeyDown=${walk}>
      ${TABS.map(([name, title]) => html`
        <button key=${name} id=${`tab-${name}`} role="tab" aria-selected=${name === now} aria-controls="pool-panel" tabindex=${name === now ? 0 : -1} onClick=${() => change({ show: name })}>${title}</button>`)}
    </div>`;
}

function Nothing() {
  if (base.value) return html`<${Empty} title="This recording has no pool"><p>Choose another mind.</p><//>`;
  return html`
    <${Empty} title="There is no pool yet">
      <p>A pool keeps good answers, so that agents with similar questions see how others answered. Begin a pool, or look at a recorded one first.</p>
      <p><a href=${linkTo("pools", { from: "recorded", user: "", seq: "" })}>Look at a recorded pool</a></p>
    <//>
    <${Create} />`;
}
