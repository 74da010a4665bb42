/** The choice of a conversation, or of a new one with its pack. */
import { html, useId } from "../../html.js";
import { base, change } from "../../state.js";
import { dayOf } from "../../format.js";
import { clipped } from "./words.js";

/** @typedef {import("./shapes.js").Session} Session */

/** A new conversation is named after the time of its beginning, as the server does it. */
const newName = () => `${new Date().toISOString().slice(0, 19)}Z`;

/** @param {{session: Session, sessions: Session[], pack: string, packs: {packs: string[], pack: string} | undefined}} props */
export function Choice({ session, sessions, pack, packs }) {
  const [id, packId] = [useId(), useId()];
  const isNew = !session.seq;
  return html`
    <div class="row end">
      <label class="grow" for=${id}><span>Which talk</span>
        <select id=${id} value=${session.session} onChange=${(/** @type {any} */ event) => change({ talk: event.target.value, pack: "", seq: "" })}>
          ${isNew && html`<option value=${session.session}>A new talk</option>`}
          ${sessions.map((each) => html`<option value=${each.session}>${dayOf(each.last)}: ${clipped(each.opening, 60)}</option>`)}
        </select>
      </label>
      ${isNew && !base.value && packs ? html`
        <label for=${packId}><span>Who answers</span>
          <select id=${packId} value=${pack} onChange=${(/** @type {any} */ event) => change({ talk: session.session, pack: event.target.value })}>
            ${packs.packs.map((name) => html`<option value=${name}>${name}</option>`)}
          </select>
        </label>` : pack && html`<p class="small soft answers">answered by the pack “${pack}”</p>`}
      ${!base.value && !isNew && html`<button onClick=${() => change({ talk: newName(), pack: packs?.pack || pack, seq: "" })}>New talk</button>`}
    </div>`;
}
