/** How what a page shows came about: live by a model, by stand-ins, or recorded. Always right of the page's title. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { held } from "../network.js";
import { base, page, recordings, user } from "../state.js";

/** @typedef {{model: string, stand_ins: boolean}} Answers who answers here in most roles */

export function SaidHow() {
  const { data } = useQuery(/** @type {import("../api.js").Ask | null} */ (base.value ? null : { path: "/answers" }));
  const answers = /** @type {Answers | undefined} */ (data);
  if (base.value) {
    const one = recordings.value.find((each) => each.page === page.value && (!each.user || each.user === user.value));
    return html`<span class="how recorded">${held ? "saved" : "recorded"}${one?.who && `; ${one.who[0]?.toLowerCase()}${one.who.slice(1)} answered`}</span>`;
  }
  if (!answers) return null;
  return answers.stand_ins
    ? html`<span class="how" title="No model is named: what stands in answers by rules">by stand-ins</span>`
    : html`<span class="how live">live, by ${answers.model}</span>`;
}
