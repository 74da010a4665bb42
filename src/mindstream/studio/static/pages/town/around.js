/** What somebody has around who lives in a town: where it is, who is near, what was said; a line to say something. */
import { html, useState } from "../../html.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {import("./ways.js").Surroundings} Surroundings */

/**
 * @param {{who: string, now: Surroundings | null, problem: Error | null, act: (body: Record<string, unknown>) => void, end: () => void}} props
 */
export function Around({ who, now, problem, act, end }) {
  const [text, type] = useState("");
  const say = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim()) act({ act: "say", text: text.trim() });
    type("");
  };
  const near = now?.people ?? [], heard = (now?.talk.length ? now.talk : []).slice(-4);
  const happened = (now?.happened ?? []).filter((each) => each.text).slice(-3);
  return html`
    <section class="around card stack" aria-label=${`You are ${who}`}>
      <div class="row"><strong class="words">You are ${who}</strong>
        ${now && html`<span class="soft small words">${now.doing || "standing about"}, ${now.where || "outdoors"}</span>`}
        <span class="row push"><button onClick=${() => act({ act: "wait", minutes: 5 })}>Wait 5 minutes</button>
          ${now?.talks_with && html`<button onClick=${() => act({ act: "decline" })}>End the talk</button>`}<button onClick=${end}>Leave</button></span></div>
      ${problem && html`<${ReadFailure} problem=${problem} />`}
      ${heard.length > 0 ? html`<ol class="stack" role="log">${heard.map((line) => html`<li class="words"><strong>${line.by}</strong> ${line.text}</li>`)}</ol>`
        : happened.length > 0 && html`<ol class="soft small" role="log">${happened.map((each) => html`<li class="words">${each.who} ${each.text}</li>`)}</ol>`}
      <form class="row" onSubmit=${say}>
        <input class="grow" aria-label="Say something" placeholder=${near[0] ? `Say something to ${now?.talks_with || near[0].name}` : "Nobody is in sight; arrow keys walk"} value=${text} maxlength="600"
          onInput=${(/** @type {any} */ event) => type(event.target.value)} />
        <button class="main" disabled=${!text.trim()}>Say</button>
      </form>
    </section>`;
}
