/** Totals of the model calls: overall, by day and by role, and the rest of the budget. A day or role filters the list. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { change, params, seq, user } from "../../state.js";
import { counted, dollars, lasting, whole } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { Bar } from "../../parts/receipt.js";
import { Table } from "../../parts/table.js";
import { costOf } from "../../parts/costs.js";
import { utcDay } from "./shapes.js";

/** @typedef {import("./shapes.js").Cost} Cost @typedef {import("./shapes.js").Total} Total @typedef {import("./shapes.js").Limits} Limits */

const MOST_DAYS = 7;

/** @param {{brief: boolean}} props `brief`: in one sentence, where a call is open */
export function Totals({ brief }) {
  const { town, day = "" } = params.value;
  const query = { user: user.value, ...(seq.value === "newest" ? {} : { upto: seq.value }) };
  const { data, problem, again } = useQuery(town ? { path: `/towns/${encodeURIComponent(town)}/cost` } : { path: "/cost", query }, { on: ["model_called"] });
  const cost = /** @type {Cost | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!cost?.total.calls) return cost?.limits ? html`<${Budget} limits=${cost.limits} />` : null;
  const days = Object.entries(cost.days).reverse();
  const roles = [...(cost.days[day] ?? cost.by.role ?? [])].sort((a, b) => tokensOf(b) - tokensOf(a));
  return html`
    <section class="stack" aria-label="Total cost">
      <p class="number"><${Sum} total=${cost.total} /></p>
      ${cost.limits && html`<${Budget} limits=${cost.limits} />`}
      ${!brief && html`
        <div class="totals">
          <${ByDay} days=${days.map(([name, some]) => ({ ...added(some), name }))} />
          <${ByRole} roles=${roles} day=${day} />
        </div>`}
    </section>`;
}

/** @param {Total} total */
const tokensOf = ({ input_tokens, output_tokens }) => input_tokens + output_tokens;

/** @param {{total: Total}} props */
function Sum({ total }) {
  const cached = total.input_tokens ? total.cached_tokens / total.input_tokens : 0;
  return html`
    <b>${costOf(total)}</b> · ${counted(total.calls, "call")} · ${whole(tokensOf(total))} tokens${cached > 0 && `, ${whole(100 * cached)} % of the input from the provider’s cache`} · ${lasting(total.seconds)}
    ${total.failed > 0 && html` · <button class="link problem" onClick=${() => change({ failed: "yes", call: "", role: "", day: "" })}>${whole(total.failed)} failed</button>`}`;
}

/** Sum the totals of all roles. @param {Total[]} some @returns {Total} */
function added(some) {
  /** @type {Total} */
  const all = { name: "", calls: 0, failed: 0, broken_off: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, seconds: 0, cost_usd: 0, free: 0, unpriced: 0 };
  for (const one of some) {
    for (const field of /** @type {const} */ (["calls", "failed", "input_tokens", "output_tokens", "seconds", "free", "unpriced"])) all[field] += one[field];
    all.cost_usd = (all.cost_usd ?? 0) + (one.cost_usd ?? 0);
  }
  return all.unpriced && !all.cost_usd ? { ...all, cost_usd: null } : all;
}

/** @param {number} most @returns {import("../../parts/table.js").Column<Total>[]} */
const columns = (most) => [
  { title: "calls", of: ({ calls }) => whole(calls), numeric: true },
  { title: "tokens", of: (total) => whole(tokensOf(total)), numeric: true },
  { title: "", of: (total) => html`<${Bar} value=${tokensOf(total)} most=${most} />` },
  { title: "cost", of: (total) => costOf(total), numeric: true },
];

/** @param {{name: string, words: string, field: "day" | "role"}} props */
function Choose({ name, words, field }) {
  const isChosen = params.value[field] === name;
  return html`<button class="item" aria-pressed=${isChosen} onClick=${() => change({ [field]: isChosen ? "" : name, call: "" })}>${words}</button>`;
}

/** @param {{days: Total[]}} props */
function ByDay({ days }) {
  const shown = days.slice(0, MOST_DAYS);
  const most = Math.max(...shown.map(tokensOf), 0);
  const first = { title: "day (UTC)", of: (/** @type {Total} */ { name }) => html`<${Choose} name=${name} words=${utcDay(name)} field="day" />` };
  return html`
    <div class="stack">
      <${Table} caption="By day" columns=${[first, ...columns(most)]} rows=${shown} />
      ${days.length > MOST_DAYS && html`<p class="soft small">The total includes ${counted(days.length - MOST_DAYS, "earlier day")} that this table does not show.</p>`}
    </div>`;
}

/** @param {{roles: Total[], day: string}} props */
function ByRole({ roles, day }) {
  const most = Math.max(...roles.map(tokensOf), 0);
  const first = { title: day ? `role, on ${utcDay(day)}` : "role", of: (/** @type {Total} */ { name }) => html`<${Choose} name=${name} words=${name} field="role" />` };
  return html`<${Table} caption="By role" columns=${[first, ...columns(most)]} rows=${roles} />`;
}

/** The limits of a budget and the amounts used. @param {{limits: Limits}} props */
function Budget({ limits: { of, tokens, usd, spent_tokens, spent_usd } }) {
  const whose = of === "token" ? "Budget of this access token, today" : "Budget of the server from its start until it is stopped";
  const known = spent_tokens !== null || spent_usd !== null;
  if (!known) return html`<p class="small soft">${whose}: at most ${[tokens !== null && `${whole(tokens)} tokens`, usd !== null && dollars(usd)].filter(Boolean).join(", ")}.</p>`;
  return html`
    <p class="small soft">${whose}</p>
    <dl class="receipt budget">
      ${tokens !== null && html`<${Left} words="tokens" spent=${spent_tokens ?? 0} most=${tokens} say=${whole} />`}
      ${usd !== null && html`<${Left} words="dollars" spent=${spent_usd ?? 0} most=${usd} say=${dollars} />`}
    </dl>`;
}

/** @param {{words: string, spent: number, most: number, say: (value: number) => string}} props */
function Left({ words, spent, most, say }) {
  return html`<dt>${words}</dt><dd><${Bar} value=${spent} most=${most} /></dd><dd class="number">${say(spent)} of ${say(most)}</dd><dd />`;
}
