/** Why: one gesture everywhere. A button "why" opens the side sheet, which says what something rests on. */
import { html } from "../html.js";
import { openSheet } from "./sheet.js";

/** @param {{title: string, about: string, says?: string, children: any}} props `about`: of what, for whoever hears the page; `says`: its words */
export function Why({ title, about, says = "why", children }) {
  const open = () => openSheet({ title, body: () => children });
  return html`<button class="link small" onClick=${open} aria-haspopup="dialog" aria-label=${`${says[0]?.toUpperCase()}${says.slice(1)}: ${about.slice(0, 80)}`}>${says}</button>`;
}
