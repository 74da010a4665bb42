/** Views of one page, as links: which of them is seen stands in the link. */
import { html } from "../html.js";
import { linkTo, page, params } from "../state.js";

/** @param {{name: string, label: string, views: [string, string][]}} props `name`: in the link; the first view is "" there */
export function Tabs({ name, label, views }) {
  const now = params.value[name] ?? "";
  return html`
    <nav class="tabs" aria-label=${label}>
      ${views.map(([view, words]) => html`<a href=${linkTo(page.value, { [name]: view })} aria-current=${now === view ? "true" : undefined}>${words}</a>`)}
    </nav>`;
}
