/** Correct or forget a memory; the effect on other memories is shown first. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain } from "../../api.js";
import { base, change, keepLink } from "../../state.js";
import { counted } from "../../format.js";
import { askChange } from "../../parts/dialog.js";

/** @typedef {import("./shapes.js").Memory} Memory @typedef {import("./shapes.js").Removal} Removal */

/** @param {string} id */
const pathOf = (id) => `/users/{user}/memories/${encodeURIComponent(id)}`;

/** @param {{memory: Memory}} props */
export function Care({ memory }) {
  const [correcting, setCorrecting] = useState(false);
  if (base.value) return html`<p class="soft small">A recording cannot be changed. In <a href="#/memory">your own data</a>, you can <b>correct</b> or <b>forget</b> a memory: open it there. Before it is forgotten, you see what would be deleted with it.</p>`;
  return html`
    <div class="row">
      ${memory.status === "holds" && html`<button aria-expanded=${correcting} onClick=${() => setCorrecting(!correcting)}>Correct</button>`}
      <button class="grave" onClick=${() => askForget(memory)}>Forget</button>
    </div>
    ${correcting && html`<${Correcting} memory=${memory} done=${() => setCorrecting(false)} />`}`;
}

/** @param {{memory: Memory, done: () => void}} props */
function Correcting({ memory, done }) {
  const [text, type] = useState(memory.text);
  /** @param {Event} event */
  const correct = (event) => {
    event.preventDefault();
    askChange({
      title: "Correct this memory?",
      verb: "Correct it",
      preview: async () => html`
        <p>The memory from now on:</p><p class="words card">${text}</p>
        <p>The old text stays in the history of this memory:</p><p class="words card soft">${memory.text}</p>`,
      act: async () => {
        const isHere = keepLink();
        const made = /** @type {{memory: Memory}} */ (await ask({ path: `${pathOf(memory.id)}/correct`, body: { text } }));
        done();
        if (isHere()) change({ id: made.memory.id });
        askAllAgain();
        return "Corrected.";
      },
    });
  };
  return html`
    <form class="stack" onSubmit=${correct}>
      <label><span>What it should say</span>
        <textarea maxlength="100000" value=${text} onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      </label>
      <div><button class="main" disabled=${!text.trim() || text === memory.text}>Look at the change</button></div>
    </form>`;
}

/** @param {Memory} memory */
function askForget(memory) {
  askChange({
    title: "Forget this memory for good?",
    verb: "Forget it",
    grave: true,
    preview: () => showRemoval(memory),
    act: async () => {
      const isHere = keepLink();
      const gone = /** @type {Removal} */ (await ask({ method: "DELETE", path: pathOf(memory.id) }));
      if (isHere()) change({ id: "" });
      askAllAgain();
      return `Forgotten for good: ${counted(gone.asked.length + gone.drawn.length, "memory", "memories")}.${gone.pending ? " Another program is reading the file; the deleted bytes are overwritten when it has finished." : ""}`;
    },
  });
}

/** @param {Memory} memory */
async function showRemoval(memory) {
  const removal = /** @type {Removal} */ (await ask({ method: "DELETE", path: pathOf(memory.id), query: { dry_run: true } }));
  const read = (/** @type {string[]} */ ids) => Promise.all(ids.slice(0, 50).map((id) => /** @type {Promise<Memory>} */ (ask({ path: pathOf(id) }))));
  const [drawn, changed] = await Promise.all([read(removal.drawn), read(removal.changed)]);
  const left = changed.map((one, at) => ({ ...one, text: removal.left[at] ?? one.text }));
  const parts = memory.kind === "chat" && drawn.some(({ kind }) => kind === "note");
  return html`
    <p class="words card">${memory.text}</p>
    <p>The memory is permanently deleted, and cannot be restored. ${drawn.length ? "Also deleted, as derived from this memory alone:" : removal.items.length ? "" : "Nothing else is deleted with it."}</p>
    <${Going} memories=${drawn} more=${removal.drawn.length - drawn.length} />
    ${removal.items.length > 0 && html`<p>Also deleted from the beliefs and plans:</p><ul class="list">${removal.items.map((text) => html`<li class="words">${text}</li>`)}</ul>`}
    ${left.length > 0 && html`<p>${left.length === 1 ? "One memory stays, but with this text:" : `${removal.changed.length} memories stay, but with these texts:`}</p><${Going} memories=${left} more=${removal.changed.length - left.length} />`}
    ${parts && html`<p class="soft">To forget only a part of this message, close this dialog and forget the note that states that part.</p>`}`;
}

/** @param {{memories: Memory[], more: number}} props `more`: number of memories that are not listed */
function Going({ memories, more }) {
  if (!memories.length) return null;
  return html`
    <ul class="list">
      ${memories.map(({ id, text, kind }) => html`<li key=${id}><span class="words">${text}</span> <span class="tag">${kind}</span></li>`)}
      ${more > 0 && html`<li class="soft">and ${more} more</li>`}
    </ul>`;
}
