/** What could not be read, in words, and a way on. */
import { html } from "../html.js";

/** @param {{problem: Error, again?: () => void}} props */
export function ReadFailure({ problem, again }) {
  return html`
    <div class="stack" role="alert">
      <p class="problem">${problem.message}</p>
      ${again && html`<div><button onClick=${again}>Ask again</button></div>`}
    </div>`;
}
