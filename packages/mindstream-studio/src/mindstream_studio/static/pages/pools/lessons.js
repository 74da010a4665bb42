/** Lessons of a pool: the tasks and corrections that each is based on, and how it has been confirmed or contradicted. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, useQuery } from "../../api.js";
import { base, user } from "../../state.js";
import { counted, dayOf } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { pathOf } from "./shapes.js";

/** @typedef {import("./shapes.js").Details} Details @typedef {import("./shapes.js").Lesson} Lesson */

/** @param {{pool: string, details: Details}} props */
export function Lessons({ pool, details: { owner } }) {
  const [all, showAll] = useState(false);
  const { data, problem, again } = useQuery({ path: `${pathOf(pool)}/lessons`, query: all ? { retired: true } : {} });
  const lessons = /** @type {{lessons: Lesson[]} | undefined} */ (data)?.lessons;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!lessons) return null;
  const texts = new Map(lessons.map(({ id, text }) => [id, text]));
  return html`
    <label class="row"><input type="checkbox" checked=${all} onChange=${() => showAll(!all)} /> Show retired lessons too</label>
    ${!lessons.length && html`
      <${Empty} title=${all ? "No lessons yet" : "No lessons in use"}><p>Say whether the result of a task was right, and if not, why: <code>mindstream pool verdict ${pool} --wrong "…"</code>. A model derives lessons for other tasks from the reason; they are listed here. Or write one by hand: <code>mindstream pool lesson ${pool} "…"</code>.</p><//>`}
    <ol class="list" aria-label="Lessons">
      ${lessons.map((one) => html`<${One} key=${one.id} pool=${pool} one=${one} texts=${texts} mayChange=${!base.value && [owner, one.writer].includes(user.value)} />`)}
    </ol>`;
}

/** @param {{pool: string, one: Lesson, texts: Map<string, string>, mayChange: boolean}} props */
function One({ pool, one, texts, mayChange }) {
  const act = (/** @type {string} */ verb) => async () => { await ask({ path: `${pathOf(pool)}/lessons/${verb}`, body: { ids: [one.id] } }); askAllAgain(); };
  const retire = () => askChange({
    title: "Retire this lesson?", verb: "Retire it", grave: true,
    preview: async () => html`<p class="words card">${one.text}</p><p>The lesson will no longer be shown to agents. Its history stays.</p>`, act: act("retire"),
  });
  const share = () => askChange({
    title: "Share this lesson?", verb: "Share it", grave: false,
    preview: async () => html`<p class="words card">${one.text}</p><p>${one.asked_by && `The lesson is based on words of ${one.asked_by}, who is not listed by name as a member of the pool. `}${one.private && `Until it is shared, only ${one.asked_by || one.writer} is shown it. `}If the pool’s owner shares a lesson, it counts as confirmed and trusted.</p>`, act: act("share"),
  });
  return html`
    <li class="stack">
      <p class="words">${one.text}${one.applies && html` <span class="soft">When: ${one.applies}.</span>`}</p>
      <p class="row small soft">
        <span class="tag">${one.retired ? "retired" : one.state}</span>
        ${one.private && html`<span class="tag">private</span>`}${one.untrusted && html`<span class="tag">from third-party text</span>`}${one.flagged && html`<span class="tag">flagged</span>`}
        <span>${one.by_hand ? `written by hand by ${one.by_hand}, ` : one.vouched && "vouched for, "}confirmed by ${counted(one.confirmed_by - Number(one.vouched), "task")}, contradicted by ${one.contradicted_by}; ${counted(one.right, "right answer")} given with it, ${one.wrong} wrong</span>
        <span>${one.writer}, ${dayOf(one.at)}</span>
      </p>
      ${one.retired && html`<p class="small soft words">${one.retired}</p>`}
      ${one.disputes.filter((id) => texts.has(id)).map((id) => html`<p key=${id} class="small words">A lesson that contradicts it: ${texts.get(id)}</p>`)}
      <details><summary>What it is based on</summary><ul>${one.sources.map((source) => html`<li key=${source} class="words">${source}</li>`)}</ul></details>
      ${mayChange && !one.retired && html`
        <div class="row">
          ${(one.private || one.untrusted) && html`<button onClick=${share} aria-label=${`Share: ${one.text}`}>Share</button>`}
          <button class="quiet" onClick=${retire} aria-label=${`Retire: ${one.text}`}>Retire</button>
        </div>`}
    </li>`;
}
