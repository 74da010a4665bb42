/** The answers offered to a pool: admitted and rejected ones, each with the reasons. */
import { html, useState } from "../../html.js";
import { ask, useQuery } from "../../api.js";
import { base, change, params } from "../../state.js";
import { number, timeOf } from "../../format.js";
import { whoAnswered } from "../../parts/costs.js";
import { Empty } from "../../parts/empty.js";
import { ReadFailure } from "../../parts/failure.js";
import { Bar } from "../../parts/receipt.js";
import { Why } from "../../parts/why.js";
import { OfferPair } from "./create.js";
import { pathOf } from "./shapes.js";

/** @typedef {import("./shapes.js").Pair} Pair @typedef {import("./shapes.js").Details} Details */

const VERDICTS = [["", "All"], ["admitted", "Let in"], ["rejected", "Refused"]];
/** The title of the side sheet about a pair. @type {Record<Pair["verdict"], string>} */
const WHY = { admitted: "Why it was let in", rejected: "Why it was refused", "": "Why it is not let in yet" };
const MOST = 20;

/** @param {{pool: string, details: Details}} props */
export function Pairs({ pool, details }) {
  const verdict = params.value.verdict ?? "";
  const [more, setMore] = useState(/** @type {{of: string, pairs: Pair[], next: string} | null} */ (null));
  const { data, problem, again } = useQuery({ path: `${pathOf(pool)}/pairs`, query: { limit: MOST, verdict } });
  const first = /** @type {{pairs: Pair[], next: string} | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!first) return html`<p class="soft">Loading …</p>`;
  const rest = more?.of === verdict ? more : null;
  const pairs = [...first.pairs, ...(rest?.pairs ?? [])];
  const next = rest ? rest.next : first.next;
  const readOn = async () => {
    const found = /** @type {{pairs: Pair[], next: string}} */ (await ask({ path: `${pathOf(pool)}/pairs`, query: { limit: MOST, verdict, cursor: next } }));
    setMore({ of: verdict, pairs: [...(rest?.pairs ?? []), ...found.pairs], next: found.next });
  };
  return html`
    <div class="row" role="group" aria-label="Which pairs are shown">
      ${VERDICTS.map(([each = "", title]) => html`<button key=${each} aria-pressed=${each === verdict} onClick=${() => change({ verdict: each })}>${title}</button>`)}
    </div>
    ${!base.value && details.rubrics.length > 0 && html`<${OfferPair} pool=${pool} />`}
    ${pairs.length === 0 && html`<${Empty} title=${verdict === "rejected" ? "Nothing was refused" : verdict ? "Nothing was let in yet" : "Nothing was offered yet"}><p>${verdict ? "Press “All” to see all pairs." : base.value ? "This recording contains no pairs." : details.rubrics.length ? "Offer an answer above; it is judged by the pool’s rubric." : "The pool’s owner must freeze a rubric first: see the tab “Rubric”."}</p><//>`}
    <ol class="list" aria-label="Pairs">${pairs.map((pair) => html`<${PairLine} key=${pair.id} pair=${pair} details=${details} />`)}</ol>
    ${next && html`<div><button onClick=${readOn}>Older pairs</button></div>`}`;
}

/** Describe the verdict on a pair. @param {Pair} pair */
export function becameOf({ verdict, by_hand, score, served }) {
  if (by_hand) return "added by hand";
  if (!verdict) return "not judged yet";
  const said = `${verdict === "admitted" ? "let in" : "refused"}, ${number(score)} of 100`;
  return verdict === "admitted" && !served ? `${said}, but not shown as an example` : said;
}

/** @param {{pair: Pair, details: Details}} props */
function PairLine({ pair, details }) {
  const why = pair.verdict === "rejected" ? pair.reasons.join("; ") : pair.unserved[0];
  return html`
    <li class="stack tight">
      <h3 class="words clip">${pair.query}</h3>
      <p class="words clip">${pair.answer}</p>
      <div class="row small soft">
        <span class=${`verdict ${pair.verdict}`}>${becameOf(pair)}</span>
        <span>by ${pair.writer}${pair.asked_by && `, asked by ${pair.asked_by}`}</span>
        <span>${timeOf(pair.at)}</span>
        <${Why} title=${WHY[pair.by_hand ? "admitted" : pair.verdict]} about=${pair.query}><${Judgement} pair=${pair} details=${details} /><//>
      </div>
      ${(pair.verdict === "rejected" || !pair.served) && why && html`<p class="small words clip">${why}</p>`}
    </li>`;
}

/** @param {{pair: Pair, details: Details}} props */
function Judgement({ pair, details }) {
  const rubric = details.rubrics.find(({ version }) => version === pair.rubric);
  const grades = Object.entries(pair.grades);
  const most = (/** @type {string} */ name) => rubric?.criteria.find((each) => each.name === name)?.points ?? 100;
  return html`
    <p class="words"><b>${pair.query}</b></p>
    <p class="words card">${pair.answer}</p>
    <p>${sumOf(pair, rubric?.threshold)}</p>
    ${grades.length > 0 && html`
      <dl class="receipt">
        ${grades.map(([name, points]) => html`
          <dt class="words">${name}</dt><dd><${Bar} value=${points} most=${most(name)} /></dd>
          <dd class="number">${number(points)}</dd><dd class="soft number">of ${most(name)}</dd>`)}
      </dl>`}
    ${pair.reasons.length > 0 && html`<h3>Reasons</h3><ul class="list">${pair.reasons.map((each) => html`<li class="words small">${each}</li>`)}</ul>`}
    ${pair.unserved.length > 0 && html`<h3>Why it is not shown to you as an example</h3><ul class="list">${pair.unserved.map((each) => html`<li class="words small">${each}</li>`)}</ul>`}
    <dl class="facts">
      <dt>written by</dt><dd>${pair.writer}${pair.model && `: ${whoAnswered(pair.model)}`}</dd>
      ${pair.asked_by && html`<dt>asked by</dt><dd>${pair.asked_by}</dd>`}
      ${pair.by && html`<dt>graded by</dt><dd>${whoAnswered(pair.by)}</dd>`}
      ${pair.rubric > 0 && html`<dt>by rubric</dt><dd>version ${pair.rubric}</dd>`}
      ${pair.fit !== null && html`<dt>answer fits question</dt><dd>${pair.fit > 0 ? "rather yes" : "rather no"} (log odds ${number(pair.fit)})</dd>`}
      <dt>examples shown to the writer</dt><dd>${pair.shown.length || "none"}</dd>
    </dl>`;
}

/** @param {Pair} pair @param {number | undefined} threshold */
function sumOf(pair, threshold) {
  if (pair.by_hand) return "A person added this pair by hand: it is trusted, and was not graded by the rubric.";
  if (!pair.verdict) return "This pair has not been graded yet.";
  if (!pair.rubric) return "This pair was let in without grading, because a person or a check had accepted its answer.";
  const needed = threshold === undefined ? "" : ` ${threshold} were needed.`;
  return `${pair.verdict === "admitted" ? "Let in" : "Refused"} with ${number(pair.score)} points of 100.${needed}`;
}
