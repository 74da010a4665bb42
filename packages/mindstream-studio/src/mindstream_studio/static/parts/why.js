/** The button "why", which opens the side sheet with the reasons of something. */
import { html } from "../html.js";
import { openSheet } from "./sheet.js";

/** @param {{title: string, about: string, says?: string, children: any}} props `about`: the subject, for screen readers; `says`: text of the button */
export function Why({ title, about, says = "why", children }) {
  const open = () => openSheet({ title, body: () => children });
  return html`<button class="link small" onClick=${open} aria-haspopup="dialog" aria-label=${`${says[0]?.toUpperCase()}${says.slice(1)}: ${about.slice(0, 80)}`}>${says}</button>`;
}
