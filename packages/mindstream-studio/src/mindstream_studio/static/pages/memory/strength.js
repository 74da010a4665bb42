/** A memory's strength and its forgetting curve: the prediction if it is not recalled again. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { ago, lasting, percent } from "../../format.js";
import { Chart } from "../../parts/chart.js";
import { CHANGING } from "./shapes.js";

/**
 * @typedef {{fades: boolean, level: number, lasting: boolean, returned: number, now: number, counts_again: number,
 *   laws: {lasting_level: number, asleep_s: number} | null, drawn: number, curve: [number, number][]}} Held
 */

/** @param {{id: string, status: string}} props */
export function Strength({ id, status }) {
  const { data } = useQuery({ path: `/users/{user}/memories/${encodeURIComponent(id)}/strength` }, { on: CHANGING });
  const held = /** @type {Held | undefined} */ (data);
  if (!held || status !== "holds") return null;
  if (held.lasting) return html`<h3>Strength</h3><p class="soft">This memory has been recalled so often that it never fades.</p>`;
  if (!held.laws) return html`<h3>Strength</h3><p class="soft">In this mind, memories become neither stronger nor weaker.</p>`;
  const half = held.curve.find(([, kept]) => kept < 0.5);
  const last = held.curve.at(-1);
  const words = half
    ? `If it is not recalled, the chance that it has faded reaches 50 % after ${half[0]} days.`
    : `If it is not recalled, it is still active after ${last?.[0] ?? 0} days with a probability of ${percent(last?.[1] ?? 1)}.`;
  const left = held.counts_again - held.now;
  return html`
    ${held.fades ? html`<${Chart} title="Probability that it is still active" xs=${held.curve.map(([day]) => day)} from=${0} to=${1.02}
      curves=${[{ label: "still active", values: held.curve.map(([, kept]) => kept) }]}
      sayX=${(/** @type {number} */ day) => `${day} d`} sayY=${percent} words=${words} />` : html`<h3>Strength</h3><p class="soft">This memory does not fade, because of its kind or of the retention policy.</p>`}
    ${(held.fades || held.level > 0) && html`<p class="soft small">Level ${held.level} of ${held.laws?.lasting_level}; last recalled (or else written) ${ago(held.now - held.returned)}.
      ${left > 0 ? ` A recall makes it stronger only after another ${lasting(left)}.` : " The next recall makes it stronger."}</p>`}`;
}
