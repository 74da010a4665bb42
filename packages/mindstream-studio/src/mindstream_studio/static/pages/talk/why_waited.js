/** The reason why an answer waited or did not: the gate's decision in a sentence, and whether it was right. */
import { html } from "../../html.js";
import { lastOf, spansOf } from "./exchanges.js";
import { Times } from "./times.js";
import { Briefing } from "./briefing.js";
import { spaced, took } from "./words.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */

/** The shipped gates, with the criterion of each. @type {Record<string, string>} */
const GATES = {
  belief: "by the phase that the talk is in (gate “belief”)",
  talker: "by the talker itself, as it begins to answer (gate “talker”)",
};

const HINT = "a hint of danger; ";

/** Prefixes of a gate's reason that state what overrode the gate. @type {[string, string][]} */
const OVERRULED = [
  ["an alarm; ", "The message raised an alarm, so the answer was given at once."],
  ["nothing can follow the answer; ", "The client accepts only one message as the answer, so the answer waited for the reasoner."],
];

/** Return the reason as a sentence. @param {Row} decided @param {boolean} waited @returns {string} */
export function becauseOf(decided, waited) {
  const { gate, phase, why } = decided;
  if (why.startsWith(HINT)) return `${becauseOf({ ...decided, why: why.slice(HINT.length) }, waited)} The message hints at danger, so the reasoner thinks about it in any case.`;
  const [, overruled] = OVERRULED.find(([words]) => why.startsWith(words)) ?? [];
  if (overruled) return overruled;
  const where = `the talk was in the phase “${spaced(phase)}”`;
  if (gate === "belief" && why === `phase ${phase}`) {
    return waited
      ? `Because ${where}, in which an answer waits until the reasoner has thought about what was said.`
      : `Because ${where}, in which an answer is given at once, and the reasoner thinks about the message afterwards.`;
  }
  if (gate === "talker") {
    return waited
      ? `Because the talker asked for it: what was said needed a thought before it could be answered (${where}).`
      : `Because the talker found that it could answer at once (${where}).`;
  }
  return why || "No reason was recorded for the decision to wait or not.";
}

/** Return in a sentence whether the waiting was useful. @param {Row} judged @param {boolean} waited */
function cameOf({ needed, changed, why }, waited) {
  const what = why.includes("correction") ? "a correction" : "a new or changed plan";
  if (needed) return waited ? `Waiting was useful: the answer already contains ${what} from the thought.` : `The answer came too soon: the thought then brought ${what}.`;
  const rest = `the thought brought no new plan and no correction${changed ? ", though it changed what is believed" : ""}`;
  return waited ? `Waiting was not necessary: ${rest}.` : `Not waiting was right: ${rest}.`;
}

/** Return in a sentence how often earlier waiting in this conversation was useful. @param {Exchange} one @param {Row[]} rows */
function soFar(one, rows) {
  const judged = new Map(rows.filter(({ event }) => event === "judged").map((row) => [row.about, row]));
  const waited = rows.filter(({ event, waits, answers }) => event === "decided" && waits && answers < one.heard.seq && judged.has(answers));
  if (!waited.length) return "";
  const needed = waited.filter(({ answers }) => judged.get(answers)?.needed).length;
  if (waited.length === 1) return `Earlier in this talk, 1 answer waited for a thought; the thought was ${needed ? "" : "not "}needed.`;
  const of = needed === waited.length ? "all" : needed || "none";
  return `Earlier in this talk, ${waited.length} answers waited for a thought; ${of} of the thoughts ${needed > 1 ? "were" : "was"} needed.`;
}

/** @param {{one: Exchange, rows: Row[], titled?: boolean}} props */
export function Decision({ one, rows, titled = true }) {
  const [decided, said, judged] = [lastOf(one, "decided"), lastOf(one, "said"), lastOf(one, "judged")];
  const waited = Boolean(said?.waited ?? decided?.waits ?? lastOf(one, "waiting"));
  const span = spansOf(one).find(({ kind }) => kind === "wait");
  if (!decided && !waited) return null;
  return html`
    ${titled && html`<h3>${waited ? "Why it waited" : "Why the answer did not wait"}</h3>`}
    <p class="words">${decided ? becauseOf(decided, waited) : "The log of this talk does not contain the decision, so the reason is unknown."}</p>
    ${span && html`<p>The answer waited ${took(span.to - span.from)}. ${judged ? cameOf(judged, true) : said?.late ? "Then it was given, before the thought was finished." : ""}</p>`}
    ${!waited && judged && html`<p>${cameOf(judged, false)}</p>`}
    ${waited && html`<p class="soft small">${soFar(one, rows)}</p>`}
    ${decided && html`<p class="soft small">Decided ${GATES[decided.gate] ?? html`by the gate “<span class="words">${decided.gate}</span>”`}.</p>`}`;
}

/** @param {{one: Exchange, waiting: Row, rows: Row[]}} props */
export function WhyWaited({ one, waiting, rows }) {
  const thought = one.rows.find((row) => row.event === "thought" && row.seq > waiting.seq);
  return html`
    <${Decision} one=${one} rows=${rows} titled=${false} />
    <h3>What was said</h3>
    <p class="words card">${one.heard.text}</p>
    ${thought && html`<h3>The thought for which the answer waited</h3><p class="words card">${thought.text}</p><${Briefing} thought=${thought} />`}
    <h3>How long each part took</h3>
    <${Times} one=${one} />`;
}
