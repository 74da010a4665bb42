/** A tool call that a thought made. */
import { html } from "../../html.js";
import { took } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row */

/** A tool call and its result. @param {{call: Row, gave: Row | undefined}} props */
export function Tool({ call, gave }) {
  return html`
    <details class="tool">
      <summary><span class="mono">${call.tool}</span> <small class="soft">${gave ? `${gave.failed ? "failed after" : "gave a result after"} ${took(gave.at - call.at)}` : "has not answered"}</small></summary>
      <p class="small soft">arguments</p><p class="words mono card">${call.arguments}</p>
      ${gave && html`<p class="small soft">result${gave.foreign ? ", with text from third parties" : ""}</p><p class="words mono card">${gave.text}</p>`}
    </details>`;
}
