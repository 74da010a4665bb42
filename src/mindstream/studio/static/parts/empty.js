/** What stands where there is nothing yet: it says so, and what to do. */
import { html } from "../html.js";

/** @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<section class="empty"><h2>${title}</h2>${children}</section>`;
}
