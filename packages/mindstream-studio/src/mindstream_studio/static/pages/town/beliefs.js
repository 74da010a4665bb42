/** What a resident believes at a moment, next to what is so; a belief that differs is marked, with its beginning. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { counted } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {{kind: string, about: string, believed: string, happened: string, is_false: boolean | null, origin: string}} Belief */

/** @param {{town: string, resident: string, step: number}} props */
export function Beliefs({ town, resident, step }) {
  const { data, problem, again } = useQuery({ path: `/towns/${encodeURIComponent(town)}/beliefs`, query: { resident, at: `step ${step}` } });
  const found = /** @type {{beliefs: Belief[]} | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!found) return null;
  const wrong = found.beliefs.filter((each) => each.is_false !== false);
  return html`
    <h3>What happened, and what is believed</h3>
    <p class="soft small">Shown are ${wrong.length} of ${counted(found.beliefs.length, "belief")}: those that differ from what happened, and whispered ones, which cannot be checked.</p>
    <table>
      <thead><tr><th>about</th><th>believed</th><th>happened</th><th>began</th></tr></thead>
      <tbody>
        ${wrong.map((each) => html`<tr key=${each.about + each.believed}><td>${each.about}</td><td class="words">${each.believed}</td><td class="words">${each.happened || "not in the log"}</td><td class="soft small">${each.origin}</td></tr>`)}
      </tbody>
    </table>`;
}
