/** The reasons of a resident's act: percept, recalled memories with scores, decision with probability and draw, plan. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { linkTo } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {{text: string, because?: Reason[], kind?: string, since?: number, p?: number, draw?: number, score?: number}} Reason */

/** @param {{town: string, resident: string, step: number}} props */
export function Reasons({ town, resident, step }) {
  const { data, problem, again } = useQuery({ path: `/towns/${encodeURIComponent(town)}/why`, query: { resident, at: `step ${step}` } });
  const found = /** @type {{reason: Reason} | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!found) return html`<p class="soft">Loading …</p>`;
  const { text, because = [], since = step } = found.reason;
  return html`
    <p class="words">${text}</p>
    ${because.length > 0 ? html`<${Tree} reasons=${because} />` : html`<p class="soft">The log contains no further reasons.</p>`}
    ${isPage("traces") && html`<p class="small"><a href=${linkTo("traces", { town, resident, step: since, seq: "" })}>the model calls behind it</a></p>`}`;
}

/** @param {{reasons: Reason[]}} props */
function Tree({ reasons }) {
  return html`
    <ul class="reasons">
      ${reasons.map((reason) => html`
        <li>
          <p class="words">${reason.text}</p>
          ${reason.p !== undefined && reason.draw !== undefined && html`<${Draw} p=${reason.p} draw=${reason.draw} />`}
          ${reason.because && html`<${Tree} reasons=${reason.because} />`}
        </li>`)}
    </ul>`;
}

/** The probability of a yes as a bar, with a mark at the random number: inside the bar, it is a yes. Choices among several answers have no `draw`. @param {{p: number, draw: number}} props */
function Draw({ p, draw }) {
  return html`
    <svg class="draw" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${`Yes if the random number is below ${p.toFixed(2)}; it was ${draw.toFixed(2)}`}>
      <rect class="whole" width="100" height="8" /><rect class="part" width=${100 * p} height="8" />
      <rect class="drawn" x=${Math.min(99, 100 * draw)} width="1" height="8" />
    </svg>`;
}
