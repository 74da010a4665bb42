/** Memories by day, newest first, of one kind or of all kinds. */
import { html, useState } from "../../html.js";
import { ask, useQuery } from "../../api.js";
import { base, change, params, user } from "../../state.js";
import { clockOf, counted, dayOf } from "../../format.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { CHANGING, STATES } from "./shapes.js";
import { Strip } from "./strip.js";

/** @typedef {import("./shapes.js").Memory} Memory @typedef {{memories: Memory[], next: string}} Page */

const A_PAGE = 100;
const PATH = "/users/{user}/memories";
/** @type {[string, string][]} */
const KINDS = [["", "everything"], ["chat", "what was said"], ["note", "notes"], ["thought", "thoughts"], ["belief", "beliefs"], ["observation", "what was seen"], ["dream", "dreams"], ["plan", "plans"]];

/** @param {{moment: number | undefined}} props */
export function TimeLine({ moment }) {
  const kinds = params.value.kind ?? "";
  const query = { limit: A_PAGE, ...(kinds ? { kinds } : {}) };
  const { data, problem, again } = useQuery({ path: PATH, query }, { on: CHANGING });
  const first = /** @type {Page | undefined} */ (data);
  const key = JSON.stringify([user.value, kinds, base.value]);
  const [kept, keep] = useState(/** @type {Page & {key: string} | null} */ (null));
  const more = kept?.key === key ? kept : null;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!first) return null;
  const known = new Set(first.memories.map(({ id }) => id));
  const all = [...first.memories, ...(more?.memories ?? []).filter(({ id }) => !known.has(id))];
  const shown = all.filter(({ created }) => moment === undefined || created <= moment);
  const next = more ? more.next : first.next;
  const earlier = async () => {
    const page = /** @type {Page} */ (await ask({ path: PATH, query: { ...query, cursor: next } }));
    keep({ key, memories: [...(more?.memories ?? []), ...page.memories], next: page.next });
  };
  if (!shown.length && !next && !kinds) return html`<${Nothing} moment=${moment} />`;
  return html`
    ${!base.value && moment === undefined && html`<${WriteDown} />`}
    <div class="row"><${KindChoice} kinds=${kinds} /><span class="soft small" role="status">${counted(shown.length, "memory", "memories")}${next ? ", and earlier ones" : ""}</span></div>
    <${Strip} memories=${shown} />
    <${Days} memories=${shown} />
    ${next && html`<div><button onClick=${earlier}>Earlier</button></div>`}`;
}

/** @param {{kinds: string}} props */
function KindChoice({ kinds }) {
  return html`
    <select aria-label="Which memories are shown" value=${kinds} onChange=${(/** @type {any} */ event) => change({ kind: event.target.value })}>
      ${KINDS.map(([kind, words]) => html`<option value=${kind}>${words}</option>`)}
    </select>`;
}

/** @param {{memories: Memory[]}} props */
function Days({ memories }) {
  /** @type {Map<string, Memory[]>} */
  const days = new Map();
  for (const one of memories) days.set(dayOf(one.created), [...(days.get(dayOf(one.created)) ?? []), one]);
  return [...days].map(([day, some]) => html`
    <section key=${day} class="stack day" id=${`day-${day}`}>
      <h2>${day}</h2>
      <ol class="list">${some.map((one) => html`<${Entry} key=${one.id} one=${one} />`)}</ol>
    </section>`);
}

/** @param {{one: Memory}} props */
function Entry({ one: { id, text, kind, created, status } }) {
  return html`
    <li>
      <button class="item words clip" aria-pressed=${params.value.id === id} onClick=${() => change({ id })}>${text}</button>
      <div class="row small soft">
        <span class="tag">${kind}</span><span class="number">${clockOf(created)}</span>${status !== "holds" && html`<span>${(STATES[status] ?? status).split(":")[0]}</span>`}
      </div>
    </li>`;
}

/** @param {{moment: number | undefined}} props */
function Nothing({ moment }) {
  if (moment !== undefined) return html`<${Empty} title="At that moment, nothing was remembered yet"><p>Move the slider to a later moment.</p><//>`;
  if (base.value) return html`<${Empty} title=${`The recording has no memories of ${user.value}`}><p>Choose another mind.</p><//>`;
  return html`
    <${Empty} title=${user.value === "you" ? "You have no memories yet" : `${user.value} has no memories yet`}>
      <p>Everything that is said in a conversation is remembered. You can also add a memory here:</p>
      <${WriteDown} />
    <//>`;
}

function WriteDown() {
  const [text, type] = useState("");
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const keepIt = (event) => {
    event.preventDefault();
    ask({ path: PATH, body: { text } }).then(() => type(""), tell);
  };
  return html`
    <form class="row" onSubmit=${keepIt}>
      <input class="grow" aria-label="Something to remember" placeholder="Something to remember" value=${text} maxlength="100000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button class="main" disabled=${!text.trim()}>Remember</button>
    </form>
    ${problem && html`<${ReadFailure} problem=${problem} />`}`;
}
