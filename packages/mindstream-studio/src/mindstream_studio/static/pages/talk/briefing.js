/** The advice of a thought to the talker: the situation, what to ask, what to say, what to be careful about. */
import { html } from "../../html.js";

/** @typedef {import("./shapes.js").Row} Row */

/** @param {{thought: Row}} props */
export function Briefing({ thought }) {
  const parts = [["the situation", thought.stands], ["to find out", thought.ask], ["to say", thought.offer], ["to be careful about", thought.care]].filter(([, text]) => text);
  if (!parts.length) return null;
  return html`<dl class="facts">${parts.map(([name, text]) => html`<dt>${name}</dt><dd class="words">${text}</dd>`)}</dl>`;
}
