/** A tool call that a thought made. */
import { html } from "../../html.js";
import { took } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row */

/** A tool call and its result. @param {{call: Row, gave: Row | undefined}} props */
export function Tool({ call, gave }) {
  return html`
    <details class="tool">
      <summary><span class="mono">${call.tool}</span> <small class="soft">${gave ? `${gave.failed ? "failed after" : "gave something in"} ${took(gave.at - call.at)}` : "has not answered"}</small></summary>
      <p class="small soft">asked with</p><p class="words mono card">${call.arguments}</p>
      ${gave && html`<p class="small soft">gave${gave.foreign ? ", as strangers wrote it" : ""}</p><p class="words mono card">${gave.text}</p>`}
    </details>`;
}
