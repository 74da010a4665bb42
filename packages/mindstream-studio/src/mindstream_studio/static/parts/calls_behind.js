/** Links to the model calls behind something, if the page Traces exists here. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { isPage } from "../pages.js";
import { linkTo } from "../state.js";

/** @typedef {{calls: {seq: number, prompt: string, role: string}[]}} Found */

const MOST = 8;

/** The model calls for a resident of a town at one step. @param {{town: string, resident: string, step: number}} props */
export function CallsOfStep({ town, resident, step }) {
  const query = { resident, step, limit: MOST };
  const { data } = useQuery(isPage("traces") ? { path: `/towns/${encodeURIComponent(town)}/calls`, query } : null);
  const calls = /** @type {Found | undefined} */ (data)?.calls ?? [];
  if (!calls.length) return null;
  return html`
    <p class="row small"><span class="soft">Model calls at step ${step}</span>
      ${calls.map(({ seq, prompt, role }) => html`<a href=${linkTo("traces", { town, call: seq, resident, step, seq: "" })}>${(prompt || role).replaceAll("_", " ")}</a>`)}</p>`;
}
