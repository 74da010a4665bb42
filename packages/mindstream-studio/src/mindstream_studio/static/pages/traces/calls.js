/** The list of model calls, newest first, optionally filtered; one line each with tokens and duration. */
import { html, useRef, useState } from "../../html.js";
import { ask, useQuery } from "../../api.js";
import { base, change, linkTo, params, seq, user } from "../../state.js";
import { timeOf, whole } from "../../format.js";
import { isPage } from "../../pages.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { Icon } from "../../parts/icons.js";
import { spaced, took } from "../talk/words.js";
import { costOfCall } from "../../parts/costs.js";
import { BROKEN_OFF, isFailed, sourcePath, timesOf, utcDay } from "./shapes.js";

/** @typedef {import("./shapes.js").Call} Call @typedef {{calls: Call[], next: string}} CallPage */

const A_PAGE = 50;

/** Filters of the list, stored in the link, with a description of each. @type {Record<string, (value: string) => string>} */
const NARROWED = {
  role: (role) => `of the ${role}`,
  day: utcDay,
  failed: () => "that failed",
  about: (row) => `for row ${row}`,
  resident: (name) => `for ${name}`,
  step: (step) => `at step ${step}`,
};

/** @returns {Record<string, string | number | boolean>} */
function queryOf() {
  const { role, day, failed, about, resident, step, town } = params.value;
  /** @type {Record<string, string | number | boolean>} */
  const query = { limit: A_PAGE, ...(role && { role }), ...(day && timesOf(day)), ...(failed && { failed: true }), ...(about && { about }) };
  if (town) return { ...query, ...(resident && { resident }), ...(step && { step }) };
  return seq.value === "newest" ? query : { ...query, upto: seq.value };
}

export function Calls() {
  const path = `${sourcePath()}/calls`;
  const query = queryOf();
  const key = JSON.stringify([base.value, user.value, path, query]);
  const { data, problem, again } = useQuery({ path, query }, { on: ["model_called"] });
  const first = /** @type {CallPage | undefined} */ (data);
  const [kept, keep] = useState(/** @type {CallPage & {key: string} | null} */ (null));
  const more = kept?.key === key ? kept : null;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!first) return html`<section aria-label="Calls" />`;
  const known = new Set(first.calls.map(({ seq: each }) => each));
  const all = [...first.calls, ...(more?.calls ?? []).filter(({ seq: each }) => !known.has(each))];
  const next = more ? more.next : first.next;
  const earlier = async () => {
    const page = /** @type {CallPage} */ (await ask({ path, query: { ...query, cursor: next } }));
    keep({ key, calls: [...(more?.calls ?? []), ...page.calls], next: page.next });
  };
  return html`
    <section class="stack" aria-label="Calls">
      <${Narrowed} />
      ${all.length ? html`<${List} calls=${all} />` : html`<${Nothing} />`}
      ${next && html`<div><button onClick=${earlier}>Earlier</button></div>`}
    </section>`;
}

/** The active filters, each with a button that removes it. */
function Narrowed() {
  const parts = Object.entries(NARROWED).flatMap(([name, say]) => (params.value[name] ? [{ name, words: say(params.value[name] ?? "") }] : []));
  if (!parts.length) return null;
  return html`
    <div class="row small"><span class="soft">Only calls</span>
      ${parts.map(({ name, words }) => html`
        <button class="narrowed" onClick=${() => change({ [name]: "" })} aria-label=${`Remove the filter: calls ${words}`}><span class="words">${words}</span> <${Icon} name="close" /></button>`)}
    </div>`;
}

/** @param {{calls: Call[]}} props */
function List({ calls }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  /** Move the focus from call to call with the arrow keys. @param {KeyboardEvent} event */
  const walk = (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const all = /** @type {HTMLButtonElement[]} */ ([...(place.current?.querySelectorAll("button.item") ?? [])]);
    const next = all[all.indexOf(/** @type {any} */ (document.activeElement)) + step];
    if (step && next) { event.preventDefault(); next.focus(); }
  };
  return html`<div class="call-list"><ol class="list calls" ref=${place} onKeyDown=${walk}>${calls.map((call) => html`<${Line} key=${call.seq} call=${call} />`)}</ol></div>`;
}

/** @param {{call: Call}} props */
function Line({ call }) {
  const { seq: at, prompt, role, input_tokens, output_tokens, seconds, error, resident, step } = call;
  const who = resident ? `${resident}, step ${step}` : role;
  return html`
    <li class="call">
      <span class="what">
        <button class="item" aria-pressed=${params.value.call === String(at)} onClick=${() => change({ call: at })}>${spaced(prompt || role)}</button>
        <span class="small soft">${who}, ${timeOf(call.at)}</span>
        ${error && html`<span class=${isFailed(call) ? "small problem clip" : "small soft"}>${isFailed(call) ? `failed: ${error}` : BROKEN_OFF}</span>`}
      </span>
      <span class="small soft number">${whole(input_tokens)} in, ${whole(output_tokens)} out</span>
      <span class="small soft number">${took(seconds)}</span>
      <span class="small number">${costOfCall(call)}</span>
    </li>`;
}

function Nothing() {
  if (Object.keys(NARROWED).some((name) => params.value[name])) {
    const clear = () => change(Object.fromEntries(Object.keys(NARROWED).map((name) => [name, ""])));
    return html`<${Empty} title="No call matches these filters"><button onClick=${clear}>Show all calls</button><//>`;
  }
  if (params.value.town) return html`<${Empty} title="No model was called for this town"><p>Rules simulate this town, or it has not run yet.</p><//>`;
  if (seq.value !== "newest") return html`<${Empty} title="No model had been asked yet at that moment"><p>Move the slider to a later moment.</p><//>`;
  if (base.value) return html`<${Empty} title="This recording contains no model calls of ${user.value}"><p>Choose another mind.</p><//>`;
  return html`
    <${Empty} title="No model has been asked yet">
      <p>When a ${isPage("talk") ? html`<a href=${linkTo("talk")}>talk</a>` : "talk"}, a plan or a sleep calls a model, the call is listed here: its prompt, its reply and its cost.</p>
    <//>`;
}

