/** One turn, step by step: the replies of each role, the tool calls and their results. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { isPage } from "../../pages.js";
import { linkTo } from "../../state.js";
import { number } from "../../format.js";
import { whoAnswered } from "../../parts/costs.js";
import { ReadFailure } from "../../parts/failure.js";
import { DIARY } from "./shapes.js";
import { STEPS, sentenceOf } from "./sentences.js";

/** @typedef {import("./shapes.js").Row} Row */

const MOST = 200;

/** @param {{began: Row}} props */
export function Turn({ began }) {
  const query = { after: began.seq, limit: MOST, kinds: [...DIARY, ...STEPS].join() };
  const { data, problem } = useQuery({ path: "/users/{user}/log", query }, { on: ["turn_ended", ...STEPS] });
  const after = /** @type {{rows: Row[]} | undefined} */ (data)?.rows ?? [];
  const next = after.findIndex(({ event }) => event === "turn_began");
  const rows = next < 0 ? after : after.slice(0, next);
  return html`
    ${problem && html`<${ReadFailure} problem=${problem} />`}
    <details><summary>What the mind was shown when the turn began</summary><p class="words card small">${began.words}</p></details>
    <ol class="list">${rows.map((row) => html`<${Step} key=${row.seq} row=${row} />`)}</ol>
    ${after.length === MOST && next < 0 && html`<p class="soft small">Only the first ${MOST} steps are shown here; the log may contain more of this turn.</p>`}`;
}

/** @param {{row: Row}} props */
function Step({ row }) {
  const said = sentenceOf(row);
  if (!said) return null;
  const tokens = row.event === "replied" && row.tokens ? `${number(row.tokens)} tokens` : "";
  return html`
    <li>
      <div class="row small soft"><span>${said.what}</span>${row.model && html`<span>by ${whoAnswered(row.model)}</span>`}<span class="push number">${tokens}</span></div>
      ${said.words && html`<p class="words">${said.words}</p>`}
      ${row.event === "replied" && isPage("traces") && html`<a class="small" href=${linkTo("traces", { about: row.seq })}>the call</a>`}
    </li>`;
}
