/** Why an answer is as it is: what it was answered from, and why it waited; down to the calls of models. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { linkTo, params } from "../../state.js";
import { number } from "../../format.js";
import { Receipt } from "../../parts/receipt.js";
import { beliefsAt, plansAt } from "./believed.js";
import { lastOf, spansOf } from "./exchanges.js";
import { Times } from "./times.js";
import { plain, spaced, took } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

/** @param {{one: Exchange, said: Row, rows: Row[]}} props */
export function WhyAnswered({ one, said, rows }) {
  const briefing = rows.findLast((row) => row.event === "thought" && row.seq < said.seq && (row.stands || row.ask || row.offer || row.care));
  return html`
    <div class="card"><p class="words clip">${said.text}</p></div>
    <p>${said.event !== "said" ? "Added when the thought was finished." : said.model === "rules" ? "Answered by what stands in for a model." : `Answered by ${said.model}.`} <a href=${linkTo("talk", { talk: params.value.talk ?? "", seq: said.seq })}>The talk as it stood then</a></p>
    <h3>What was said</h3>
    <p class="words card">${one.heard.text}</p>
    <${Decision} one=${one} />
    ${briefing && html`<h3>What the reasoner had told it</h3><${Briefing} thought=${briefing} />`}
    <${Held} rows=${rows} at=${said.seq} />
    <${CameToMind} heard=${one.heard} />
    <h3>How long each part took</h3>
    <${Times} one=${one} />`;
}

/** @param {{one: Exchange}} props */
function Decision({ one }) {
  const decided = lastOf(one, "decided");
  const said = lastOf(one, "said");
  const judged = lastOf(one, "judged");
  if (!decided) return null;
  const waited = said?.waited ?? decided.waits;
  return html`
    <h3>${waited ? "Why it waited" : "Why it did not wait"}</h3>
    <p class="words">${because(decided, waited)}</p>
    <dl class="facts">
      <dt>decided by</dt><dd>the gate “${decided.gate}”, in the phase “${spaced(decided.phase)}”</dd>
      <dt>thought about</dt><dd>${decided.thinks ? "yes" : "no, the talker answers alone"}</dd>
      ${judged && html`<dt>what came of it</dt><dd>${judged.needed ? `what the answer needed: ${judged.why}` : judged.changed ? "the belief changed" : "nothing that the answer needed"}</dd>`}
    </dl>`;
}

/** Why it waited or did not, as the gate says it; of the gate that goes by the phase of the talk, as a sentence. @param {Row} decided @param {boolean} waited */
function because({ gate, phase, why }, waited) {
  if (gate !== "belief" || why !== `phase ${phase}`) return why || "No reason was noted.";
  const where = `The talk is in the phase “${spaced(phase)}”.`;
  return waited ? `${where} There an answer waits until the reasoner has thought about what was said.` : `${where} There it is answered at once, and the reasoner thinks about it afterwards.`;
}

/** @param {{thought: Row}} props */
export function Briefing({ thought }) {
  const parts = [["how it stands", thought.stands], ["to find out", thought.ask], ["to say", thought.offer], ["to mind", thought.care]].filter(([, text]) => text);
  if (!parts.length) return null;
  return html`<dl class="facts">${parts.map(([name, text]) => html`<dt>${name}</dt><dd class="words">${text}</dd>`)}</dl>`;
}

/** What was believed and planned when it was said. @param {{rows: Row[], at: number}} props */
function Held({ rows, at }) {
  const [beliefs, plans] = [beliefsAt(rows, at), plansAt(rows, at)];
  return html`
    ${beliefs.map(({ slot, version, fields }) => html`
      <h3>What was believed (${slot}, version ${version})</h3>
      <dl class="facts">
        ${[...fields.values()].filter(({ items }) => items.length).map(({ name, items }) => html`
          <dt>${spaced(name)}</dt><dd class="words">${items.map(({ value }) => plain(value)).join("; ")}</dd>`)}
      </dl>`)}
    ${plans.map(({ version, steps }) => html`
      <h3>The plan then (version ${version})</h3>
      <ul class="small">${steps.map(({ head }) => html`<li class="words">${head}</li>`)}</ul>`)}`;
}

const MOST = 5;
const KINDS = ["note", "thought", "observation", "document", "chat"];

/** What the words bring to mind: memory is asked again, as of the moment when they were said. @param {{heard: Row}} props */
function CameToMind({ heard }) {
  const body = { query: heard.text, k: MOST, kinds: KINDS, as_of: heard.at, touch: false };
  const { data } = useQuery({ path: "/users/{user}/memories/recall", body });
  const memories = /** @type {{memories: import("../memory/shapes.js").Recalled[]} | undefined} */ (data)?.memories.filter(({ text }) => text !== heard.text) ?? [];
  if (!memories.length) return null;
  return html`
    <h3>What these words bring to mind</h3>
    <p class="small soft">Memory was asked again just now, as of then.</p>
    <ul class="list">
      ${memories.map(({ id, text, kind, receipt }) => html`
        <li key=${id}>
          ${isPage("memory") ? html`<a class="words clip" href=${linkTo("memory", { id, seq: "" })}>${text}</a>` : html`<p class="words clip">${text}</p>`}
          <details class="small soft"><summary>${kind}, score ${number(receipt.score)}</summary><${Receipt} receipt=${receipt} /></details>
        </li>`)}
    </ul>`;
}

/** @param {{one: Exchange, waiting: Row}} props */
export function WhyWaited({ one, waiting }) {
  const span = spansOf(one).find(({ kind }) => kind === "wait");
  const thought = one.rows.find((row) => row.event === "thought" && row.seq > waiting.seq);
  return html`
    <p>The talker did not answer at once: it ${span ? "waited" : "waits"} for a thought of the reasoner (${waiting.slots.join(", ")})${span ? `, ${took(span.to - span.from)} long` : ""}.</p>
    <h3>What was said</h3>
    <p class="words card">${one.heard.text}</p>
    <${Decision} one=${one} />
    ${thought && html`<h3>What it waited for</h3><p class="words card">${thought.text}</p><${Briefing} thought=${thought} />`}
    <h3>How long each part took</h3>
    <${Times} one=${one} />`;
}
