/** Questions to the user, and tool calls that wait for the user's approval. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {import("./shapes.js").Life} Life @typedef {import("./shapes.js").Question} Question @typedef {import("./shapes.js").Wish} Wish */

/** @param {{life: Life, editable: boolean}} props */
export function Questions({ life, editable }) {
  if (!life.questions.length && !life.leave_wanted.length) return null;
  return html`
    <section class="stack" aria-label="What it asks you">
      <h2>It asks you</h2>
      ${life.questions.map((one) => html`<${Asked} key=${one.id} question=${one} editable=${editable} />`)}
      ${life.leave_wanted.map((one) => html`<${Wanted} key=${one.id} wish=${one} editable=${editable} />`)}
    </section>`;
}

/** @param {{question: Question, editable: boolean}} props */
function Asked({ question: { id, text, late }, editable }) {
  const [answer, type] = useState("");
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {Event} event */
  const send = (event) => {
    event.preventDefault();
    ask({ path: "/users/{user}/life/answer", body: { id, text: answer } }).then(askAllAgain, tell);
  };
  return html`
    <form class="card stack" onSubmit=${send}>
      <p class="words">${text} ${late && html`<span class="tag">the mind no longer waits for this answer, but still accepts one</span>`}</p>
      ${editable && html`
        <div class="row">
          <input class="grow" aria-label=${`Answer: ${text.slice(0, 80)}`} value=${answer} maxlength="100000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
          <button class="main" disabled=${!answer.trim()}>Answer</button>
        </div>`}
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </form>`;
}

/** @param {{wish: Wish, editable: boolean}} props */
function Wanted({ wish, editable }) {
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {boolean} yes */
  const give = (yes) => ask({ path: "/users/{user}/life/leave", body: { id: wish.id, yes } }).then(askAllAgain, tell);
  return html`
    <div class="card stack">
      <p>The mind asks for permission to call <b>${wish.tool}</b>, because ${wish.foreign ? "the tool may change data, or because the arguments contain an address that no trusted source gave" : "the tool may change data"}. The arguments:</p>
      <p class="words mono">${wish.arguments}</p>
      ${wish.foreign && html`<p class="problem">The arguments may contain text from third parties.</p>`}
      ${editable && html`<div class="row"><button class="main" onClick=${() => give(true)}>Allow this call</button><button onClick=${() => give(false)}>Refuse</button></div>`}
      ${problem && html`<${ReadFailure} problem=${problem} />`}
    </div>`;
}
