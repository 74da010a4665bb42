/** A receipt shows why a memory was recalled: the parts of its score, its rank by each part, and its strength. */
import { html } from "../html.js";
import { ago, counted, number, percent } from "../format.js";

/**
 * @typedef {{score: number, rank: number, parts: Record<string, number>, ranks: Record<string, number>,
 *   strength: number | null, age_s: number, last_recalled_s: number, source: string, by: string, session: string,
 *   derived_from: string[]}} ReceiptShape
 */

/** @type {Record<string, string>} */
const SOURCES = { user: "you said it", mind: "derived by the mind", foreign: "text from third parties" };

/** @param {{value: number, most: number}} props */
export function Bar({ value, most }) {
  const part = most > 0 ? Math.max(0, Math.min(1, value / most)) : 0;
  return html`
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" width="100" height="8" rx="2" /><rect class="part" width=${100 * part} height="8" rx="2" />
    </svg>`;
}

/** @param {{receipt: ReceiptShape}} props */
export function Receipt({ receipt }) {
  const parts = Object.entries(receipt.parts).sort(([, a], [, b]) => b - a);
  const most = Math.max(...parts.map(([, value]) => value), 0);
  return html`
    <div class="stack">
      <p>This memory has rank ${receipt.rank} and a score of ${number(receipt.score)}, with these parts:</p>
      <dl class="receipt">
        ${parts.map(([name, value]) => html`
          <dt>${name.replaceAll("_", " ")}</dt>
          <dd><div><${Bar} value=${value} most=${most} /></div></dd>
          <dd class="number">${number(value)}</dd>
          <dd class="soft number">${receipt.ranks[name] ? `no. ${receipt.ranks[name]}` : ""}</dd>`)}
      </dl>
      <dl class="facts">
        <dt>where it is from</dt><dd>${SOURCES[receipt.source] ?? receipt.source}${receipt.by && ` (${receipt.by})`}</dd>
        <dt>strength</dt><dd>${receipt.strength === null ? "memories of this kind never fade" : percent(receipt.strength)}</dd>
        <dt>remembered</dt><dd>${ago(receipt.age_s)}</dd>
        <dt>last recalled</dt><dd>${ago(receipt.last_recalled_s)}</dd>
        ${receipt.session && html`<dt>in the conversation</dt><dd>${receipt.session}</dd>`}
        ${receipt.derived_from.length > 0 && html`<dt>based on</dt><dd>${counted(receipt.derived_from.length, "earlier memory", "earlier memories")}</dd>`}
      </dl>
    </div>`;
}
