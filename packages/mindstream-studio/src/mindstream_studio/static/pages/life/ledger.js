/** The ledger of tasks: open, waiting and done. Add, give up, reopen and reorder tasks. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { timeOf } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {import("./shapes.js").Task} Task */

const PATH = "/users/{user}/life/tasks";
const STANDINGS = { open: "open", waiting: "waits", done: "done", stopped: "given up" };

/** @param {{tasks: Task[], editable: boolean}} props */
export function Ledger({ tasks, editable }) {
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  /** @param {import("../../api.js").Ask} one */
  const act = (one) => ask(one).then(() => { tell(null); askAllAgain(); }, tell);
  const left = tasks.filter(({ standing }) => standing === "open" || standing === "waiting");
  const over = tasks.filter(({ standing }) => standing === "done" || standing === "stopped");
  return html`
    <section class="stack" aria-label="Ledger">
      <h2>Ledger</h2>
      ${left.length === 0 && html`<p class="soft">Nothing is left to do.</p>`}
      <ol class="list">${left.map((task, at) => html`<${One} key=${task.number} task=${task} before=${left[at - 1]} act=${act} editable=${editable} />`)}</ol>
      ${editable && html`<${Add} act=${act} />`}
      ${problem && html`<${ReadFailure} problem=${problem} />`}
      ${over.length > 0 && html`<h3>Done or given up</h3><ol class="list">${over.map((task) => html`<${One} key=${task.number} task=${task} act=${act} editable=${editable} />`)}</ol>`}
    </section>`;
}

/** @typedef {(one: import("../../api.js").Ask) => Promise<void>} Act */

/** @param {{task: Task, before?: Task, act: Act, editable: boolean}} props */
function One({ task, before, act, editable }) {
  const path = `${PATH}/${task.number}`;
  const drop = () => askChange({
    title: "Give this task up?", verb: "Give it up", grave: true,
    preview: async () => html`<p class="words card">${task.text}</p><p>The mind no longer works on this task. The task stays in the ledger, and you can reopen it.</p>`,
    act: () => act({ method: "POST", path: `${path}/drop` }),
  });
  const isLeft = task.standing === "open" || task.standing === "waiting";
  return html`
    <li class="stack">
      <p class="words">${task.text}</p>
      ${task.result && html`<p class="words soft">${task.result}</p>`}
      <div class="row small">
        <span class="tag">${STANDINGS[task.standing]}${task.until ? ` until ${timeOf(task.until)}` : ""}</span>
        ${editable && before && html`<button class="link" onClick=${() => act({ path: `${path}/move`, body: { before: before.number } })} aria-label=${`Do sooner: ${task.text.slice(0, 60)}`}>sooner</button>`}
        ${editable && task.standing !== "open" && html`<button class="link" onClick=${() => act({ method: "POST", path: `${path}/open` })} aria-label=${`Open ${isLeft ? "now" : "again"}: ${task.text.slice(0, 60)}`}>open ${isLeft ? "now" : "again"}</button>`}
        ${editable && isLeft && html`<button class="link" onClick=${drop} aria-label=${`Give up: ${task.text.slice(0, 60)}`}>give up</button>`}
      </div>
    </li>`;
}

/** @param {{act: Act}} props */
function Add({ act }) {
  const [text, type] = useState("");
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    act({ path: PATH, body: { text } }).then(() => type(""));
  };
  return html`
    <form class="row" onSubmit=${add}>
      <input class="grow" aria-label="Another task" placeholder="Another task" value=${text} maxlength="300" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button disabled=${!text.trim()}>Add</button>
    </form>`;
}
