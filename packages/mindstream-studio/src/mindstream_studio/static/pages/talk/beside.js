/** The pane beside the conversation: running reasoners, beliefs and plan with recent changes, thoughts, durations. */
import { html } from "../../html.js";
import { base } from "../../state.js";
import { beliefsAt, plansAt } from "./believed.js";
import { BeliefNow } from "./belief.js";
import { PlanNow } from "./plan.js";
import { Thoughts } from "./thoughts.js";
import { Times } from "./times.js";
import { isThoughtAbout, lastOf, rowsOf, talkerState } from "./exchanges.js";
import { clipped } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

/** @param {{exchanges: Exchange[], rows: Row[], at: number, from: number}} props `from`: the row where the talk began */
export function Beside({ exchanges, rows, at, from }) {
  const answered = exchanges.findLast((one) => lastOf(one, "said")) ?? exchanges.at(-1);
  return html`
    <${AtWork} exchanges=${exchanges} />
    ${answered && html`<section class="stack"><h2>How long each part of the last answer took</h2><${Times} one=${answered} /></section>`}
    ${beliefsAt(rows, at).map((belief) => html`<${BeliefNow} key=${belief.slot} belief=${belief} rows=${rows} from=${from} />`)}
    ${plansAt(rows, at).map((plan) => html`<${PlanNow} key=${plan.by} plan=${plan} rows=${rows} from=${from} />`)}
    <${Thoughts} exchanges=${exchanges} rows=${rows} />`;
}

/** @type {Record<import("./exchanges.js").TalkerState, string>} */
const TALKER = {
  speaks: "answers", waits: "waits for the reasoner", done: "has answered", stopped: "was stopped", failed: "failed",
};

/** @param {{exchanges: Exchange[]}} props */
function AtWork({ exchanges }) {
  const last = exchanges.at(-1);
  if (!last) return null;
  const state = talkerState(last);
  const open = exchanges.filter((one) => isThoughtAbout(one, exchanges)).at(-1);
  const calls = open ? rowsOf(open, "tool_called") : [];
  const tool = calls.findLast(({ id }) => open && !rowsOf(open, "observed").some((gave) => gave.id === id));
  const thinking = tool ? `calls ${tool.tool}` : open ? `thinks about “${clipped(open.heard.text, 60)}”` : "rests";
  const speaks = state === "speaks" || state === "waits";
  return html`
    <section class="stack">
      <h2>Who is at work</h2>
      <dl class="facts work">
        <dt class=${speaks ? "now" : ""}>talker</dt><dd>${TALKER[state]}</dd>
        <dt class=${open ? "now" : ""}>reasoner</dt><dd class="words">${thinking}</dd>
        ${!speaks && !open && last.isNow && !base.value && html`<dt class="now">you</dt><dd>it is your turn</dd>`}
      </dl>
    </section>`;
}
