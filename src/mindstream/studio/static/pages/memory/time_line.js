/** A life on a time line: memories by day, newest first. */
import { html, useEffect, useState } from "../../html.js";
import { ask, useQuery } from "../../api.js";
import { change, params, user } from "../../state.js";
import { clockOf, dayOf } from "../../format.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { CHANGING } from "./shapes.js";

/** @typedef {import("./shapes.js").Memory} Memory */

const A_PAGE = 50;
const PATH = "/users/{user}/memories";

/** @param {Memory[]} memories @returns {[string, Memory[]][]} */
function byDay(memories) {
  /** @type {Map<string, Memory[]>} */
  const days = new Map();
  for (const one of memories) {
    const day = dayOf(one.created);
    days.set(day, [...(days.get(day) ?? []), one]);
  }
  return [...days];
}

/** @param {{moment: number | undefined}} props */
export function TimeLine({ moment }) {
  const { data, problem, again } = useQuery({ path: PATH, query: { limit: A_PAGE } }, { on: CHANGING });
  const first = /** @type {{memories: Memory[], next: string} | undefined} */ (data);
  const [more, keep] = useState(/** @type {{memories: Memory[], next: string} | null} */ (null));
  useEffect(() => keep(null), [user.value]);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!first) return null;
  const shown = [...first.memories, ...(more?.memories ?? [])].filter(({ created }) => moment === undefined || created <= moment);
  const next = more ? more.next : first.next;
  const earlier = async () => {
    const page = /** @type {{memories: Memory[], next: string}} */ (await ask({ path: PATH, query: { limit: A_PAGE, cursor: next } }));
    keep({ memories: [...(more?.memories ?? []), ...page.memories], next: page.next });
  };
  if (!shown.length && !next) return html`<${Nothing} />`;
  return html`
    ${byDay(shown).map(([day, memories]) => html`
      <section key=${day} class="stack">
        <h2>${day}</h2>
        <ol class="list">${memories.map((one) => html`<${Entry} key=${one.id} one=${one} />`)}</ol>
      </section>`)}
    ${next && html`<div><button onClick=${earlier}>Earlier</button></div>`}`;
}

/** @param {{one: Memory}} props */
function Entry({ one: { id, text, kind, created, status } }) {
  return html`
    <li>
      <button class="item words clip" aria-pressed=${params.value.id === id} onClick=${() => change({ id })}>${text}</button>
      <div class="row small soft">
        <span class="tag">${kind}</span><span class="number">${clockOf(created)}</span>${status !== "holds" && html`<span>${status}</span>`}
      </div>
    </li>`;
}

function Nothing() {
  return html`
    <${Empty} title=${`Nothing is remembered of ${user.value} yet`}>
      <p>Whatever is said in a talk is remembered. You can also write something down here:</p>
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
      <input class="grow" aria-label="Something to remember" value=${text} maxlength="100000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button class="main" disabled=${!text.trim()}>Remember</button>
    </form>
    ${problem && html`<${ReadFailure} problem=${problem} />`}`;
}
