/** Views of one page as links; the selected view is stored in the link. */
import { html } from "../html.js";
import { linkTo, page, params } from "../state.js";

/** @param {{name: string, label: string, views: [string, string][]}} props `name`: name of the link parameter, which is "" for the first view */
export function Tabs({ name, label, views }) {
  const now = params.value[name] ?? "";
  return html`
    <nav class="tabs" aria-label=${label}>
      ${views.map(([view, words]) => html`<a href=${linkTo(page.value, { [name]: view })} aria-current=${now === view ? "true" : undefined}>${words}</a>`)}
    </nav>`;
}
