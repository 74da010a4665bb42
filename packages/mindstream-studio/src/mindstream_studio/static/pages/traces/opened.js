/** The view of one model call: its purpose, the full prompt and reply, and other calls with the same purpose. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { change, params } from "../../state.js";
import { timeOf, whole } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { useInView } from "../../parts/in_view.js";
import { Icon } from "../../parts/icons.js";
import { spaced, took } from "../talk/words.js";
import { About, CameOfIt } from "./about.js";
import { costOfCall, whoAnswered } from "../../parts/costs.js";
import { BROKEN_OFF, isFailed, sourcePath } from "./shapes.js";

/** @typedef {import("./shapes.js").Call} Call @typedef {import("./shapes.js").CallWords} CallWords */

/** @param {{call: string}} props */
export function Opened({ call }) {
  const { data, problem, again } = useQuery({ path: `${sourcePath()}/calls/${encodeURIComponent(call)}` });
  const found = /** @type {CallWords | undefined} */ (data);
  const place = useInView(Boolean(found || problem));
  /** @param {KeyboardEvent} event */
  const leave = (event) => { if (event.key === "Escape") change({ call: "" }); };
  return html`
    <aside class="stack opened" ref=${place} tabindex="-1" aria-label="The opened call" onKeyDown=${leave}>
      <div class="row"><h2>${found ? spaced(found.call.prompt || found.call.role) : "This call"}</h2><button class="quiet icon push" aria-label="Close" onClick=${() => change({ call: "" })}><${Icon} name="close" /></button></div>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${found && html`<${Inside} found=${found} />`}
    </aside>`;
}

/** @param {{found: CallWords}} props */
function Inside({ found: { call, messages, answered, about } }) {
  return html`
    <${Facts} call=${call} />
    <h3>What the call was for</h3>
    <${About} call=${call} rows=${about} />
    ${call.kept ? html`
      <h3>What was asked</h3>
      ${messages.map((one, at) => html`<${Message} role=${one.role} text=${one.text} open=${at === messages.length - 1} />`)}
      <h3>What was answered</h3>
      ${answered ? html`<p class="words card">${laidOut(answered)}</p>` : html`<p class="soft">Nothing.</p>`}` : html`<${NotKept} />`}
    ${!params.value.town && about.length > 0 && html`<${CameOfIt} row=${about[0]} call=${call} />`}`;
}

/** @param {{call: Call}} props */
function Facts({ call }) {
  const { at, seq, role, model, seconds, first_part_s, input_tokens, output_tokens, cached_tokens, cut, error, mended } = call;
  return html`
    <dl class="facts number">
      <dt>asked by</dt><dd>the ${role}, ${timeOf(at)}, row ${seq} of the log</dd>
      <dt>answered by</dt><dd class="words">${whoAnswered(model)}</dd>
      <dt>took</dt><dd>${took(seconds)}${first_part_s !== null && `, the first word after ${took(first_part_s)}`}</dd>
      <dt>tokens</dt><dd>${whole(input_tokens)} in${cached_tokens > 0 && ` (${whole(cached_tokens)} from the provider’s cache)`}, ${whole(output_tokens)} out</dd>
      <dt>cost</dt><dd>${costOfCall(call)}</dd>
      ${cut && html`<dt>left out</dt><dd class="words">${cut}: the prompt had to fit the model’s window</dd>`}
      ${mended && html`<dt>repaired</dt><dd>the reply was not valid JSON, but could be corrected</dd>`}
      ${error && html`<dt>${isFailed(call) ? "failed" : "ended"}</dt><dd class=${isFailed(call) ? "words problem" : "words"}>${error === BROKEN_OFF ? "cancelled, because the answer was no longer needed" : error}</dd>`}
    </dl>`;
}

const LONG = 700;

/** A message of the prompt; long messages are collapsed, except the last one. @param {{role: string, text: string, open: boolean}} props */
function Message({ role, text, open }) {
  return html`
    <details class="message" open=${open || text.length < LONG}>
      <summary class="small soft">${role || "text"} <span class="number">· ${whole(text.length)} characters</span></summary>
      <p class="words card">${text}</p>
    </details>`;
}

/** Format JSON with one line per field; return other text unchanged. @param {string} text */
function laidOut(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function NotKept() {
  return html`
    <h3>What was asked and answered</h3>
    <p class="soft">The texts of this call were not stored. To store the texts of later calls, start the server with <code>MINDSTREAM_KEEP_PROMPTS=1</code>. They make the log larger; forgotten text is removed from them, too.</p>`;
}
