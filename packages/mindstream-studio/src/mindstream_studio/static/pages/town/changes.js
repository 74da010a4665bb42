/** Controls that change a town: whisper a thought, set an object, let time pass. The effect is shown before it happens. */
import { html, useState } from "../../html.js";
import { ask } from "../../api.js";
import { askChange } from "../../parts/dialog.js";
import { conditionOf } from "../../town/moment.js";
import { addressOf } from "../../town/places.js";

/** @typedef {import("../../town/player.js").Player} Player */

/** @param {{town: string, person: import("../../town/types.js").Person, soon: () => void}} props */
export function Whisper({ town, person, soon }) {
  const [text, type] = useState("");
  const whisper = (/** @type {Event} */ event) => {
    event.preventDefault();
    const said = text.trim();
    if (!said) return;
    askChange({
      title: `Whisper to ${person.name}`, verb: "Whisper",
      preview: async () => html`<p class="words card">${said}</p><p>From the town’s next step on, ${person.name} remembers this as a thought of its own, and may act on it and tell it to others. This cannot be undone.</p>`,
      act: async () => {
        await ask({ path: `/towns/${encodeURIComponent(town)}/whisper`, body: { resident: person.name, text: said } });
        type("");
        soon();
      },
    });
  };
  return html`
    <form class="whisper" onSubmit=${whisper}>
      <input aria-label=${`Whisper to ${person.name}`} placeholder="Whisper a thought, as a whole sentence" value=${text} maxlength="10000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button disabled=${!text.trim()}>Whisper</button>
    </form>`;
}

/** @param {{town: string, player: Player, place: number, soon: () => void}} props */
export function SetThing({ town, player, place, soon }) {
  const [condition, type] = useState("");
  const name = player.town.places[place]?.[1] ?? "", address = `${player.town.places[0]?.[1]}:${addressOf(player.town, place)}`;
  const set = (/** @type {Event} */ event) => {
    event.preventDefault();
    const now = conditionOf(player.town, place, player.town.last), wanted = condition.trim();
    askChange({
      title: `Set ${name}`, verb: "Set it",
      preview: async () => html`
        <dl class="facts"><dt>now</dt><dd class="words">${now || "in order"}</dd><dt>then</dt><dd class="words">${wanted || "in order"}</dd></dl>
        <p>The condition changes at the town’s next step. Residents who see the object may react.</p>`,
      act: async () => {
        await ask({ path: `/towns/${encodeURIComponent(town)}/set`, body: { object: address, condition: wanted } });
        type("");
        soon();
      },
    });
  };
  return html`
    <form class="whisper" onSubmit=${set}>
      <input aria-label=${`The condition of ${name}`} placeholder="Condition, such as leaking. Empty: nothing is wrong" value=${condition} maxlength="300" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button>Set</button>
    </form>`;
}
