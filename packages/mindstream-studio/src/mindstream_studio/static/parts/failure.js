/** An error message for data that could not be loaded, with a button to try again. */
import { html } from "../html.js";
import { token, wanted } from "../network.js";

/** @param {{problem: Error, again?: () => void}} props */
export function ReadFailure({ problem, again }) {
  return html`
    <div class="stack" role="alert">
      <p class="problem">${problem.message}</p>
      ${again && html`<div><button type="button" onClick=${again}>Ask again</button></div>`}
      ${/** @type {any} */ (problem).status === 403 && token.value && html`<div><button type="button" onClick=${() => { wanted.value = "another"; }}>Sign in with another token</button></div>`}
    </div>`;
}
