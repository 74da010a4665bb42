/** Who knows a fact, since when, and from whom: a memory with which somebody began, as it went through the town. */
import { html, useState } from "../../html.js";
import { useQuery } from "../../api.js";
import { counted } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { momentOf } from "../../town/times.js";

/** @typedef {import("../../town/player.js").Player} Player */
/** @typedef {{name: string, step: number, time: string, how: string, by: string, chain: string[], text: string}} Knower */
/** @typedef {{says: string, residents: number, knowers: Knower[], facts: {text: string, knowers: number}[]}} Knowledge */

const SHOWN = 20;

/** @param {{town: string, player: Player, step: number}} props */
export function Facts({ town, player, step }) {
  const [fact, choose] = useState("");
  const [typed, type] = useState("");
  const { data, problem, asking } = useQuery({ path: `/towns/${encodeURIComponent(town)}/knows`, query: fact ? { fact } : {} });
  const found = /** @type {Knowledge | undefined} */ (data);
  const search = (/** @type {Event} */ event) => { event.preventDefault(); choose(typed.trim()); };
  return html`
    <form onSubmit=${search} role="search"><input type="search" aria-label="A fact" placeholder="A fact: the party, the hen" value=${typed} maxlength="1000"
      onInput=${(/** @type {any} */ event) => type(event.target.value)} /></form>
    ${problem && html`<${ReadFailure} problem=${problem} />`}
    ${fact && html`<div><button class="link small" onClick=${() => { choose(""); type(""); }}>All facts</button></div>`}
    ${found && !asking && (fact ? html`<${Knowers} found=${found} player=${player} step=${step} />` : html`<${List} found=${found} choose=${choose} />`)}`;
}

/** @param {{found: Knowledge, choose: (fact: string) => void}} props */
function List({ found, choose }) {
  const facts = [...found.facts].sort((a, b) => b.knowers - a.knowers).slice(0, SHOWN);
  if (!facts.length) return html`<p class="soft">Nobody began with a memory.</p>`;
  return html`
    <p class="soft small">What somebody knew from the beginning; the most spread first.</p>
    <ul class="list">
      ${facts.map(({ text, knowers }) => html`<li key=${text}><button class="item words" onClick=${() => choose(text)}>${text}</button> <span class="tag">${counted(knowers, "knows", "know")}</span></li>`)}
    </ul>`;
}

/** @param {{found: Knowledge, player: Player, step: number}} props */
function Knowers({ found, player, step }) {
  const known = found.knowers.filter((each) => each.step <= step), later = found.knowers.length - known.length;
  return html`
    <p class="words card">${found.says}</p>
    <p class="soft small">${counted(known.length, "of", "of")} ${found.residents} know it by now${later ? `; ${later} will` : ""}.</p>
    <ol class="list">
      ${known.map((each) => html`
        <li key=${each.name}>
          <p><${Name} player=${player} name=${each.name} /> ${each.how === "beginning" ? "from the beginning" : html`from <${Name} player=${player} name=${each.by} />`}
            ${" "}<button class="link small soft" onClick=${() => player.seek(each.step)}>${momentOf(player.town, each.step)}</button></p>
          ${each.chain.length > 2 && html`<p class="soft small words">${each.chain.join(" → ")}</p>`}
          ${each.text !== found.says && html`<p class="soft small words clip">${each.text}</p>`}
        </li>`)}
    </ol>`;
}

/** @param {{player: Player, name: string}} props */
export function Name({ player, name }) {
  const person = player.town.people.find((each) => each.name === name);
  return person ? html`<button class="link words" onClick=${() => player.choose({ who: person.number })}>${name}</button>` : html`<span class="words">${name}</span>`;
}
