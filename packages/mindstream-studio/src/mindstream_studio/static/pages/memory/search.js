/** The search field of a memory; the question is stored in the link. */
import { html, useEffect, useState } from "../../html.js";
import { change, params } from "../../state.js";
import { Icon } from "../../parts/icons.js";

export function Search() {
  const asked = params.value.q ?? "";
  const [typed, type] = useState(asked);
  useEffect(() => type(asked), [asked]);
  /** @param {Event} event */
  const search = (event) => {
    event.preventDefault();
    change({ q: typed.trim(), id: "" });
  };
  return html`
    <form class="row" role="search" onSubmit=${search}>
      <input class="grow" type="search" aria-label="Ask this memory" placeholder="Ask this memory: where is the key?" value=${typed}
        maxlength="10000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
      <button class="main"><span class="row"><${Icon} name="search" />Search</span></button>
      ${asked && html`<button type="button" onClick=${() => change({ q: "", id: "" })}>All memories</button>`}
    </form>`;
}
