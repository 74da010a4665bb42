/** A small chart of how long each part of an answer took. */
import { html } from "../../html.js";
import { isPage } from "../../pages.js";
import { linkTo } from "../../state.js";
import { spansOf } from "./exchanges.js";
import { took } from "./words.js";

/** @typedef {import("./shapes.js").Exchange} Exchange @typedef {import("./exchanges.js").Span} Span */

/** @param {{one: Exchange}} props */
export function Times({ one }) {
  const spans = spansOf(one);
  const most = Math.max(...spans.map(({ to }) => to), 0.001);
  if (!spans.length) return html`<p class="small soft">No part of this turn has finished yet.</p>`;
  return html`
    <dl class="times">
      ${spans.map((span) => html`<${Part} key=${span.seq} span=${span} most=${most} />`)}
    </dl>
    <p class="small soft">The bars begin when the message was heard (left end) and cover ${took(most)}.${spans.some(({ first }) => first !== undefined) ? " The more strongly coloured part of a bar begins with the first word." : ""}</p>`;
}

/** @param {{span: Span, most: number}} props */
function Part({ span: { name, from, to, kind, first, seq }, most }) {
  const x = (/** @type {number} */ at) => (100 * at) / most;
  const least = 0.8;
  const isCall = kind === "talker" || kind === "reasoner";
  const begins = first ?? from;
  return html`
    <dt class="small">${isCall && isPage("traces") ? html`<a href=${linkTo("traces", { call: seq, seq: "" })}>${name}</a>` : name}</dt>
    <dd>
      <svg class=${`span ${kind}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="whole" width="100" height="8" />
        <rect class="part faint" x=${Math.min(x(from), 100 - least)} width=${Math.max(x(to) - x(from), least)} height="8" />
        ${kind !== "moment" && html`<rect class="part" x=${Math.min(x(begins), 100 - least)} width=${Math.max(x(to) - x(begins), least)} height="8" />`}
      </svg>
    </dd>
    <dd class="small number">${kind === "moment" ? `at ${took(to)}` : took(to - from)}</dd>`;
}
