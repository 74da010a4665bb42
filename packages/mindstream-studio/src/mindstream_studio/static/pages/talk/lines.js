/** The lines of a conversation: messages, waiting times and durations; each answer has a button with its reasons. */
import { html, useLayoutEffect, useRef, useState } from "../../html.js";
import { ask } from "../../api.js";
import { isPage } from "../../pages.js";
import { base, linkTo, params, seq, user } from "../../state.js";
import { clockOf } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { Why } from "../../parts/why.js";
import { lastOf, rowsOf, setStopped, spansOf, talkerState, tookOf } from "./exchanges.js";
import { clearSpoken, spoken } from "./pieces.js";
import { ERASED } from "./shapes.js";
import { WhyAnswered } from "./why_answered.js";
import { WhyWaited } from "./why_waited.js";
import { took } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

/** @type {Record<string, string>} */
const ALARMED = { sure: "The message raised an alarm", hint: "The message hints at danger", taken_back: "The alarm was taken back" };
const GESTURES = ["wheel", "touchmove", "pointerdown", "keydown"];

/** @param {{exchanges: Exchange[], rows: Row[], at: number, pack: string}} props */
export function Lines({ exchanges, rows, at, pack }) {
  const end = useRef(/** @type {HTMLElement | null} */ (null));
  const many = exchanges.reduce((sum, { rows: each }) => sum + each.length + 1, 0);
  useLayoutEffect(() => stayAtTheEnd(end.current), [many]);
  const last = exchanges.at(-1);
  const isLive = at === Infinity && !base.value;
  return html`
    <ol class="lines">
      ${exchanges.map((one) => html`<${Lines.One} key=${one.heard.seq} one=${one} rows=${rows} pack=${pack} isLast=${isLive && one === last} />`)}
      ${last && isLive && ["speaks", "waits"].includes(talkerState(last)) && html`<${Speaking} key=${`live ${last.heard.seq}`} one=${last} end=${end} />`}
    </ol>
    <div ref=${end} />`;
}

/** Scroll to the newest line, and again when the page or the pane changes its size, until the user scrolls, points or types. @param {HTMLElement | null} end */
function stayAtTheEnd(end) {
  toTheEnd(end);
  const watch = new ResizeObserver(() => toTheEnd(end));
  for (const name of [".page", ".pane"]) { // an element above the talk that loads late changes the length of a narrow page, or the height of the pane in a wide one
    const place = end?.closest(name);
    if (place) watch.observe(place);
  }
  const stop = () => {
    watch.disconnect();
    for (const name of GESTURES) window.removeEventListener(name, stop);
  };
  for (const name of GESTURES) window.addEventListener(name, stop, { passive: true });
  return stop;
}

/** Scroll to the newest line; a recording that is smaller than its pane begins at the top of the page. @param {HTMLElement | null} end */
function toTheEnd(end) {
  const pane = end?.closest(".pane");
  if (pane && base.value) pane.scrollTop = pane.scrollHeight;
  else end?.scrollIntoView({ block: "end" });
}

/** @param {{one: Exchange, rows: Row[], pack: string, isLast: boolean}} props `isLast`: it is the newest exchange, and can be continued */
Lines.One = function One({ one, rows, pack, isLast }) {
  const { heard } = one;
  const said = lastOf(one, "said");
  const waiting = rowsOf(one, "waiting")[0];
  const state = talkerState(one);
  return html`
    <li class="line own">
      <p class="row small soft"><span>${heard.by || user.value} <${Moment} row=${heard} /></span>${heard.record && heard.text !== ERASED && isPage("memory") && html`<a class="push" href=${linkTo("memory", { id: heard.record, seq: "" })}>${base.value ? "in memory" : "correct or forget"}</a>`}</p>
      <p class="words">${heard.text}</p>
    </li>
    ${rowsOf(one, "alarmed").map((row) => html`<li class="line small problem">${ALARMED[row.strength] ?? row.strength}: ${row.alarm}.</li>`)}
    ${waiting && html`<${Waited} one=${one} waiting=${waiting} rows=${rows} />`}
    ${said && html`
      <li class="line">
        <p class="small soft">${said.by || pack} <${Moment} row=${said} /></p>
        <p class="words">${said.text}</p>
        <p class="row small soft">
          <span class="number">${timesInWords(one)}</span>
          <${Why} title="What this answer is based on" says="why this answer" about=${said.text}><${WhyAnswered} one=${one} said=${said} rows=${rows} /><//>
        </p>
      </li>`}
    ${state === "stopped" && html`<li class="row small soft"><span>There is no answer: it was stopped or lost.</span>${isLast && html`<${Again} one=${one} pack=${pack} />`}</li>`}
    ${rowsOf(one, "error").map((row) => html`<li class="line small problem words">Something failed (${row.where}): ${row.text}</li>`)}
    ${rowsOf(one, "follow_up").map((row) => html`
      <li class="line">
        <p class="small soft">${row.by || pack}, after thinking <${Moment} row=${row} /></p>
        <p class="words">${row.text}</p>
        <p class="row small soft"><${Why} title="Why the mind added this" says="why this" about=${row.text}><${WhyAnswered} one=${one} said=${row} rows=${rows} /><//></p>
      </li>`)}`;
};

/** Request the answer again after it was stopped. @param {{one: Exchange, pack: string}} props */
function Again({ one, pack }) {
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const answer = () => {
    clearSpoken(one.heard.seq);
    return ask({ path: "/users/{user}/answer-again", body: { seq: one.heard.seq, pack } }).then(() => setStopped(one.heard.seq, false), tell);
  };
  return html`<button onClick=${answer}>Answer it after all</button>${problem && html`<${ReadFailure} problem=${problem} />`}`;
}

/** A link to the moment of a row. @param {{row: Row}} props */
function Moment({ row }) {
  return html`<a class="number moment" href=${linkTo("talk", { talk: params.value.talk ?? "", seq: row.seq })} aria-current=${seq.value === row.seq ? "true" : undefined} title="Show the talk at this moment">${clockOf(row.at)}</a>`;
}

/** @param {{one: Exchange, waiting: Row, rows: Row[]}} props */
function Waited({ one, waiting, rows }) {
  const span = spansOf(one).find(({ kind }) => kind === "wait");
  return html`
    <li class="line waited">
      <p class="words soft">${waiting.text}</p>
      <p class="row small soft">
        <span>${span ? `The answer waited ${took(span.to - span.from)} for the reasoner’s thought.` : "The answer waits for the reasoner’s thought."}</span>
        <${Why} title="Why it waited" says="why it waited" about=${waiting.text}><${WhyWaited} one=${one} waiting=${waiting} rows=${rows} /><//>
      </p>
    </li>`;
}

/** @param {Exchange} one */
function timesInWords(one) {
  const whole = tookOf(one);
  const first = spansOf(one).findLast(({ kind, first: each }) => kind === "talker" && each !== undefined && each <= (whole ?? 0))?.first;
  const late = lastOf(one, "said")?.late ? ", before the thought was finished" : "";
  return `${first === undefined ? "" : `first word after ${took(first)}, `}answered in ${took(whole ?? 0)}${late}`;
}

/** The answer that is being generated, part by part. @param {{one: Exchange, end: {current: HTMLElement | null}}} props */
function Speaking({ one, end }) {
  const { text, reads } = spoken.value.get(one.heard.seq) ?? { text: "", reads: false };
  useLayoutEffect(() => end.current?.scrollIntoView({ block: "end" }), [text.length]);
  const waits = talkerState(one) === "waits";
  return html`
    <li class="line">
      <p class="small soft"><span role="status">The talker ${text ? "speaks" : waits ? "waits for the reasoner" : reads ? "reads" : "is about to answer"}</span></p>
      <p class="words" aria-live="off">${text}</p>
    </li>`;
}
