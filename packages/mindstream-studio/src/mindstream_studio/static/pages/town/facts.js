/** The spread of a fact: which residents know it, since when, and from whom. */
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
  const search = (/** @type {Event} */ event) => { event.preventDefault(); choose(factsLike(found, typed)[0]?.text ?? typed.trim()); };
  return html`
    <form onSubmit=${search} role="search"><input type="search" aria-label="A fact" placeholder="Search facts: party on Friday" value=${typed} maxlength="1000"
      onInput=${(/** @type {any} */ event) => type(event.target.value)} /></form>
    ${problem && html`<${ReadFailure} problem=${problem} />`}
    ${fact && html`<div><button class="link small" onClick=${() => { choose(""); type(""); }}>All facts</button></div>`}
    ${found && !asking && (fact ? html`<${Knowers} found=${found} player=${player} step=${step} />` : html`<${List} found=${found} typed=${typed} choose=${choose} />`)}`;
}

/** Return the facts that contain the typed words: those with more of the words first, then the best known. @param {Knowledge | undefined} found @param {string} typed */
function factsLike(found, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const held = (found?.facts ?? []).map((fact) => ({ ...fact, holds: words.filter((word) => fact.text.toLowerCase().includes(word)).length }));
  return held.filter(({ holds }) => holds || !words.length).sort((a, b) => b.holds - a.holds || b.knowers - a.knowers);
}

/** @param {{found: Knowledge, typed: string, choose: (fact: string) => void}} props `typed`: the words that a fact is to hold */
function List({ found, typed, choose }) {
  if (!found.facts.length) return html`<p class="soft">No resident has a memory from before the town began, and no user has added one.</p>`;
  const like = factsLike(found, typed);
  const facts = like.slice(0, SHOWN);
  if (!facts.length) return html`<p class="soft">No fact contains any of these words. Press Enter to search for other forms of the words, too.</p>`;
  return html`
    <p class="soft small" role="status">${typed.trim() ? `${counted(like.length, "fact contains", "facts contain")} at least one of these words` : "Facts that residents knew when the town began, or that a user added; the most widely known first"}. Choose a fact to see who told it to whom.</p>
    <ul class="list">
      ${facts.map(({ text, knowers }) => html`<li key=${text}><button class="item words" onClick=${() => choose(text)}>${text}</button> <span class="tag">${counted(knowers, "knows", "know")} it at the latest step</span></li>`)}
    </ul>`;
}

/** @param {{found: Knowledge, player: Player, step: number}} props */
function Knowers({ found, player, step }) {
  const known = found.knowers.filter((each) => each.step <= step), later = found.knowers.filter((each) => each.step > step);
  return html`
    <p class="words card">${found.says}</p>
    <p class="soft small">${known.length} of ${found.residents} ${known.length === 1 ? "knows" : "know"} it by now.</p>
    <ol class="list">
      ${known.map((each) => html`
        <li key=${each.name}>
          <${Heard} player=${player} each=${each} />
          ${each.chain.length > 2 && html`<p class="soft small words">${each.chain.join(" → ")}</p>`}
          ${each.text !== found.says && html`<p class="soft small words clip">${each.text}</p>`}
        </li>`)}
    </ol>
    ${later.length > 0 && html`
      <h3>Told later</h3>
      <ol class="list">${later.map((each) => html`<li key=${each.name}><${Heard} player=${player} each=${each} /></li>`)}</ol>`}`;
}

/** A resident with the speaker it knows the fact from, and a link to that moment. @param {{player: Player, each: Knower}} props */
function Heard({ player, each }) {
  return html`
    <p><${Name} player=${player} name=${each.name} /> ${each.how === "beginning" ? (each.step > 0 ? "added by a user" : "from the beginning") : html`from <${Name} player=${player} name=${each.by} />`}
      ${" "}<button class="link small soft" onClick=${() => player.seek(each.step)}>${momentOf(player.town, each.step)}</button></p>`;
}

/** @param {{player: Player, name: string}} props */
export function Name({ player, name }) {
  const person = player.town.people.find((each) => each.name === name);
  return person ? html`<button class="link words" onClick=${() => player.choose({ who: person.number })}>${name}</button>` : html`<span class="words">${name}</span>`;
}
