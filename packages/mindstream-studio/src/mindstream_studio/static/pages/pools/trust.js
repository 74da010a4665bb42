/** The sources of a pool's answers: signs against a source, and the owner's decision whether to trust it. */
import { html } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { base, user } from "../../state.js";
import { counted, percent } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { Empty } from "../../parts/empty.js";
import { pathOf } from "./shapes.js";
import { Table } from "../../parts/table.js";

/** @typedef {import("./shapes.js").Details} Details @typedef {import("./shapes.js").Source} Source */

/** @param {{pool: string, details: Details}} props */
export function Trust({ pool, details: { sources, owner } }) {
  if (!sources.length) return html`<${Empty} title="No pairs have been judged yet"><p>The sources of judged pairs will be listed here, with reasons to trust or distrust each.</p><//>`;
  const mayChange = !base.value && user.value === owner;
  /** @type {import("../../parts/table.js").Column<Source>[]} */
  const columns = [
    { title: "Who", of: ({ source }) => html`<span class="words">${source}</span>` },
    { title: "Judged", numeric: true, of: ({ pairs }) => counted(pairs, "pair") },
    { title: "With instructions", numeric: true, of: ({ orders }) => orders || "none" },
    { title: "Mismatched answers", numeric: true, of: ({ foreign }) => percent(foreign) },
    { title: "Trusted", of: ({ trusted }) => (trusted === null ? "by its pairs" : trusted ? "by a person" : "no, a person said") },
    ...(mayChange ? [{ title: "", of: (/** @type {Source} */ source) => html`<${Choose} pool=${pool} source=${source} />` }] : []),
  ];
  return html`
    <p class="soft measure">If a person trusts a source, all its admitted pairs can be shown as examples; if a person distrusts it, none can. For other sources, each pair is checked by itself. Mismatched answers: estimated share of the source’s answers that do not fit their questions. With instructions: number of pairs whose text gives the reading agent instructions.</p>
    <${Table} caption="Where pairs come from" columns=${columns} rows=${sources} />
    ${!mayChange && !base.value && html`<p class="soft small">${owner} owns this pool, and decides which sources are trusted.</p>`}`;
}

/** @param {{pool: string, source: Source}} props */
function Choose({ pool, source: { source, pairs, trusted } }) {
  /** @param {boolean} to */
  const choose = (to) => askChange({
    title: to ? "Trust this source?" : "Stop trusting this source?", verb: to ? "Trust it" : "Do not trust it", grave: !to,
    preview: async () => html`
      <p class="words card">${source}</p>
      <p>${to ? "Every admitted pair of this source can be shown as an example, also pairs that are admitted later." : `No pair of this source is shown as an example any more; it has ${counted(pairs, "judged pair")} so far. You can trust it again.`}</p>`,
    act: async () => { await ask({ path: `${pathOf(pool)}/trust`, body: { source, trusted: to } }); askAllAgain(); },
  });
  return html`
    <div class="row">
      ${trusted !== true && html`<button onClick=${() => choose(true)} aria-label=${`Trust ${source}`}>Trust</button>`}
      ${trusted !== false && html`<button class="quiet" onClick=${() => choose(false)} aria-label=${`Do not trust ${source}`}>Do not trust</button>`}
    </div>`;
}
