/** The surroundings of a controlled resident: its place, who sees it, what was said; an input to say something. */
import { html, useState } from "../../html.js";
import { listed } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";

/** @typedef {import("./ways.js").Surroundings} Surroundings */

/**
 * @param {{who: string, now: Surroundings | null, problem: Error | null, waits: boolean, act: (body: Record<string, unknown>) => void, look: () => void, end: () => void}} props
 */
export function Around({ who, now, problem, waits, act, look, end }) {
  const [text, type] = useState("");
  const say = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (waits) return;
    if (text.trim()) act({ act: "say", text: text.trim() });
    type("");
  };
  const near = now?.people ?? [], heard = (now?.talk.length ? now.talk : []).slice(-4);
  const happened = (now?.happened ?? []).filter((each) => each.text).slice(-3), seeing = near.filter((each) => !each.asleep).map((each) => each.name);
  return html`
    <section class="around card stack" aria-label=${`You are ${who}`} aria-busy=${waits}>
      <div class="row"><strong class="words">You are ${who}</strong>
        ${now && html`<span class="soft small words where">${now.doing || "standing about"}, ${now.where || "outdoors"}</span>`}
        ${now && html`<span class="small words" role="status">${seeing.length ? `${listed(seeing)} ${seeing.length === 1 ? "sees" : "see"} you.` : "No one sees you."}</span>`}
        <span class="row push"><${Places} now=${now} act=${act} /><button onClick=${() => act({ act: "wait", minutes: 5 })}>Wait 5 minutes</button>
          ${now?.talks_with && html`<button onClick=${() => act({ act: "decline" })}>End the talk</button>`}<button onClick=${end}>Leave</button></span></div>
      ${problem && html`<${ReadFailure} problem=${problem} />`}
      ${heard.length > 0 ? html`<div role="log"><ol class="stack">${heard.map((line) => html`<li class="words"><strong>${line.by}</strong> ${line.text}</li>`)}</ol></div>`
        : happened.length > 0 && html`<div role="log"><ol class="soft small">${happened.map((each) => html`<li class="words">${each.who} ${each.text}</li>`)}</ol></div>`}
      ${now && html`<${Look} now=${now} look=${look} />`}
      <form class="row" onSubmit=${say}>
        <input class="grow" aria-label="Say something" placeholder=${near[0] ? `Say something to ${now?.talks_with || near[0].name}` : now ? "No one is in sight; walk with the arrow keys" : ""} value=${text} maxlength="600"
          onInput=${(/** @type {any} */ event) => type(event.target.value)} />
        <button class="main" disabled=${waits || !text.trim()}>Say</button>
      </form>
    </section>`;
}

/** Where one can go. @param {{now: Surroundings | null, act: (body: Record<string, unknown>) => void}} props */
function Places({ now, act }) {
  const go = (/** @type {any} */ event) => {
    const place = event.target.value;
    event.target.value = "";
    act({ act: "go", place, waits: false });
  };
  return html`
    <select aria-label="Go to a place" value="" onChange=${go}>
      <option value="" disabled>Go to …</option>
      ${(now?.places ?? []).filter((each) => each.open).map((each) => html`<option value=${each.address}>${each.name}</option>`)}
    </select>`;
}

/** People and things around; loaded again each time the part is opened. @param {{now: Surroundings, look: () => void}} props */
function Look({ now, look }) {
  return html`
    <details class="small" onToggle=${(/** @type {any} */ event) => { if (event.target.open) look(); }}><summary>Look around</summary>
      <ul>
        ${now.people.map((each) => html`<li class="words"><strong>${each.name}</strong>${each.known_as && ` (${each.known_as})`}: ${each.doing}</li>`)}
        ${now.things.map((each) => html`<li class="words">${each.name}${each.condition && `: ${each.condition}`}</li>`)}
        ${!now.people.length && !now.things.length && html`<li class="soft">No people or objects are here.</li>`}
      </ul>
    </details>`;
}
