/** Shows whether the content of a page comes from a live model, rules, or a recording; placed beside the page's title. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { held } from "../network.js";
import { base, page, params, recordings, user } from "../state.js";

/** @typedef {{model: string, stand_ins: boolean}} Answers the model of most roles, and whether rules answer */

export function SaidHow() {
  const { data } = useQuery(/** @type {import("../api.js").Ask | null} */ (base.value ? null : { path: "/answers" }));
  const answers = /** @type {Answers | undefined} */ (data);
  if (base.value) return html`<${Recorded} />`;
  if (!answers) return null;
  return answers.stand_ins
    ? html`<span class="how"><span>no model is set, so rules answer; <code>mindstream init</code> sets one</span></span>`
    : html`<span class="how live">live: ${answers.model}</span>`;
}

/** Pages on which a recording shows durations. */
const TIMED = ["talk", "plan", "traces"];

function Recorded() {
  const { pool = "" } = params.value;
  const fit = recordings.value.filter((each) => each.page === page.value && (!each.user || each.user === user.value));
  const one = fit.find((each) => each.pool === pool) ?? fit[0];
  const how = held ? "saved" : "recorded";
  if (!one?.who) return html`<span class="how recorded">${how}</span>`;
  const times = !one.timed && TIMED.includes(one.page) ? "; played back, so its times are not a model’s" : "";
  return html`<span class="how recorded">${how}: ${one.who[0]?.toLowerCase()}${one.who.slice(1)}${times}</span>`;
}
