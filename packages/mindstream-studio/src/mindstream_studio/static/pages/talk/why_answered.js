/** The reasons of an answer: the beliefs, plan, memories and thoughts behind it, and its model calls. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { linkTo, params } from "../../state.js";
import { whoAnswered } from "../../parts/costs.js";
import { Receipt } from "../../parts/receipt.js";
import { beliefsAt, plansAt } from "./believed.js";
import { Briefing } from "./briefing.js";
import { Times } from "./times.js";
import { Decision } from "./why_waited.js";
import { plain, spaced } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

/** @param {{one: Exchange, said: Row, rows: Row[]}} props */
export function WhyAnswered({ one, said, rows }) {
  const briefing = rows.findLast((row) => row.event === "thought" && row.seq < said.seq && (row.stands || row.ask || row.offer || row.care));
  return html`
    <div class="card"><p class="words clip">${said.text}</p></div>
    <p>${said.event === "said" ? `Answered by ${whoAnswered(said.model)}.` : "Added after the answer, when the thought was finished."} <a href=${linkTo("talk", { talk: params.value.talk ?? "", seq: said.seq })}>The talk as it stood then</a></p>
    <h3>What was said</h3>
    <p class="words card">${one.heard.text}</p>
    <${Decision} one=${one} rows=${rows} />
    ${briefing && html`<h3>The reasoner’s advice</h3><${Briefing} thought=${briefing} />`}
    <${Held} rows=${rows} at=${said.seq} />
    <${CameToMind} heard=${one.heard} />
    <h3>How long each part took</h3>
    <${Times} one=${one} />`;
}

/** The beliefs and the plan at the time of the answer. @param {{rows: Row[], at: number}} props */
function Held({ rows, at }) {
  const [beliefs, plans] = [beliefsAt(rows, at), plansAt(rows, at)];
  return html`
    ${beliefs.map(({ version, fields }) => html`
      <h3>What was believed (version ${version})</h3>
      <dl class="facts">
        ${[...fields.values()].filter(({ items }) => items.length).map(({ name, items }) => html`
          <dt>${spaced(name)}</dt><dd class="words">${items.map(({ value }) => plain(value)).join("; ")}</dd>`)}
      </dl>`)}
    ${plans.map(({ version, steps }) => html`
      <h3>The plan at that moment (version ${version})</h3>
      <ul class="small">${steps.map(({ head }) => html`<li class="words">${head}</li>`)}</ul>`)}`;
}

const MOST = 5;
const KINDS = ["note", "thought", "observation", "document", "chat"];

/** The memories that the utterance recalls; the search is repeated now, as of the time of the utterance. @param {{heard: Row}} props */
function CameToMind({ heard }) {
  const body = { query: heard.text, k: MOST, kinds: KINDS, as_of: heard.at, touch: false };
  const { data } = useQuery({ path: "/users/{user}/memories/recall", body });
  const memories = /** @type {{memories: import("../memory/shapes.js").Recalled[]} | undefined} */ (data)?.memories.filter(({ text }) => text !== heard.text) ?? [];
  if (!memories.length) return null;
  return html`
    <h3>Memories that a search for these words finds</h3>
    <p class="small soft">This search was run for this page, not for the answer, on the memory as it was when the words were said.</p>
    <ul class="list">
      ${memories.map(({ id, text, kind, confidence, receipt }) => html`
        <li key=${id}>
          ${isPage("memory") ? html`<a class="words clip" href=${linkTo("memory", { id, seq: "" })}>${text}</a>` : html`<p class="words clip">${text}</p>`}
          <details class="small soft"><summary>${kind}, confidence ${confidence.toFixed(2)}</summary><${Receipt} receipt=${receipt} /></details>
        </li>`)}
    </ul>`;
}
