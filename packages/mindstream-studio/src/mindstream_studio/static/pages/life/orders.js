/** The standing orders: a time and an instruction each. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { timeOf } from "../../format.js";
import { askChange } from "../../parts/dialog.js";

/** @typedef {import("./shapes.js").Life} Life */

/** @param {{life: Life, editable: boolean}} props */
export function Orders({ life, editable }) {
  const due = new Map((life.due ?? []).map(({ order, at }) => [order, at]));
  return html`
    <section class="stack" aria-label="Standing orders">
      <h2>Standing orders</h2>
      ${life.orders.length === 0 && html`<p class="soft">There are no standing orders. A standing order is a time and a task, for example: every day at 8:00: ask me how I slept</p>`}
      <ul class="list">
        ${life.orders.map((order) => html`
          <li key=${order}>
            <p class="words">${order}</p>
            <div class="row small soft">
              ${due.has(order) && html`<span>next ${timeOf(due.get(order) ?? 0)}</span>`}
              ${editable && life.orders.length > 1 && html`<button class="link" onClick=${() => give(life, life.orders.filter((each) => each !== order))} aria-label=${`Take back: ${order.slice(0, 60)}`}>take back</button>`}
            </div>
          </li>`)}
      </ul>
      ${editable && html`<${Add} life=${life} />`}
    </section>`;
}

/** @param {Life} life @param {string[]} orders */
function give(life, orders) {
  askChange({
    title: "Change the standing orders?", verb: "Change them",
    preview: async () => html`<p>Standing orders from now on:</p><ul class="list card">${orders.map((order) => html`<li class="words">${order}</li>`)}</ul>`,
    act: async () => { await ask({ path: "/users/{user}/life/goal", body: { goal: life.goal, orders } }); askAllAgain(); },
  });
}

/** @param {{life: Life}} props */
function Add({ life }) {
  const [text, type] = useState("");
  /** @param {Event} event */
  const add = (event) => {
    event.preventDefault();
    give(life, [...life.orders, text.trim()]);
    type("");
  };
  return html`
    <form class="row" onSubmit=${add}>
      <input class="grow" aria-label="Another standing order" placeholder="every day at 8:00: ask me how I slept" value=${text} maxlength="1000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button disabled=${!text.trim()}>Add</button>
    </form>`;
}
