/** How well a memory is held, and its forgetting curve: what is predicted if nobody recalls it any more. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { ago, lasting, percent } from "../../format.js";
import { Chart } from "../../parts/chart.js";
import { CHANGING } from "./shapes.js";

/**
 * @typedef {{fades: boolean, level: number, lasting_level: number, lasting: boolean, last_recalled: number,
 *   rises_after_s: number, drawn: number, curve: {day: number, kept: number}[]}} Held
 */

/** @param {{id: string}} props */
export function Strength({ id }) {
  const { data } = useQuery({ path: `/users/{user}/memories/${encodeURIComponent(id)}/strength` }, { on: CHANGING });
  const held = /** @type {Held | undefined} */ (data);
  if (!held) return null;
  if (!held.fades) return html`<h3>How well it is held</h3><p class="soft">Memories of this kind do not fade.</p>`;
  const half = held.curve.find(({ kept }) => kept < 0.5);
  const last = held.curve.at(-1);
  const words = held.lasting
    ? "It has been recalled often enough to last: it does not fade."
    : `If nobody recalls it, ${half ? `it is forgotten as likely as not after ${half.day} days` : `it is still held after ${last?.day ?? 0} days with a chance of ${percent(last?.kept ?? 1)}`}.`;
  const since = ago(Date.now() / 1000 - held.last_recalled);
  return html`
    <${Chart} title="How it will fade" xs=${held.curve.map(({ day }) => day)} from=${0} to=${1.02}
      curves=${[{ label: "held", values: held.curve.map(({ kept }) => kept) }]}
      sayX=${(/** @type {number} */ day) => `${day} d`} sayY=${percent} words=${words} />
    <p class="soft small">Level ${held.level} of ${held.lasting_level}; recalled last ${since}.
      ${!held.lasting && ` A recall makes it stronger when ${lasting(held.rises_after_s)} have passed since the last.`}</p>`;
}
