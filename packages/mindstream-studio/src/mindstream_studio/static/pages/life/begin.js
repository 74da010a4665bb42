/** The form that gives a mind a first goal. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { base, user } from "../../state.js";
import { askChange } from "../../parts/dialog.js";
import { Empty } from "../../parts/empty.js";

export function Begin() {
  const [goal, type] = useState("");
  if (base.value) return html`<${Empty} title="In this recording, this mind has no goal"><p>Choose another mind.</p><//>`;
  /** @param {Event} event */
  const begin = (event) => {
    event.preventDefault();
    askChange({
      title: `Give ${user.value} this goal?`,
      verb: "Give it",
      preview: async () => html`<p class="words card">${goal}</p><p>The goal becomes the first task of the mind’s task list (ledger). Nothing is done until you press “Let it live”.</p>`,
      act: async () => { await ask({ path: "/users/{user}/life/goal", body: { goal } }); askAllAgain(); },
    });
  };
  return html`
    <${Empty} title="There is no goal yet">
      <p>Give the mind a goal, for example: Write an account of the old ferry, at most 200 words, with its sources.</p>
      <form class="stack wide" onSubmit=${begin}>
        <label><span>Its goal</span><textarea maxlength="20000" value=${goal} onInput=${(/** @type {any} */ event) => type(event.target.value)} /></label>
        <div><button class="main" disabled=${!goal.trim()}>Give it this goal</button></div>
      </form>
    <//>`;
}
