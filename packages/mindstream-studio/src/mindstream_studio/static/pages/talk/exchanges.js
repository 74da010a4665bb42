/** Group rows into exchanges: an utterance with its answer and thoughts, the state of the answer, and durations. */
import { signal } from "../../html.js";
import { aboutOf } from "./rows.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Exchange} Exchange */
/**
 * @typedef {{name: string, from: number, to: number, kind: "wait" | "talker" | "reasoner" | "tool" | "moment", first?: number,
 *   seq: number}} Span  a part of an answer; `from`, `to`, `first` in seconds since the utterance was heard
 * @typedef {"speaks" | "waits" | "done" | "stopped" | "failed"} TalkerState
 */

/** Assign each row to the utterance that caused it. @param {Row[]} rows of one talk @param {boolean} isNow @returns {Exchange[]} */
export function exchangesOf(rows, isNow) {
  /** @type {Exchange[]} */
  const found = [];
  /** @type {Map<number, Exchange>} */
  const byHeard = new Map();
  /** @type {Exchange | undefined} */
  let current;
  for (const row of rows) {
    if (row.event === "heard") {
      current = { heard: row, rows: [], isNow };
      byHeard.set(row.seq, current);
      found.push(current);
    } else {
      const about = aboutOf(row).map((seq) => byHeard.get(seq)).filter(Boolean);
      const own = about.at(-1) ?? (row.event === "model_called" ? beganWith(found, row) : beside(found, row));
      own?.rows.push(row);
    }
  }
  return found;
}

const SOON_S = 0.02;

/** Return the exchange of a model call: that of the last utterance before the call began. @param {Exchange[]} found @param {Row} call */
function beganWith(found, call) {
  const began = call.at - call.seconds + SOON_S;
  return found.findLast(({ heard }) => heard.at <= began) ?? found.at(0);
}

/** Assign rows that were written with a thought to the exchange of that thought. @param {Exchange[]} found @param {Row} row */
function beside(found, row) {
  const together = found.findLast(({ rows }) => rows.some((each) => each.event === "thought" && each.at === row.at && each.by === row.by));
  return together ?? found.at(-1);
}

/** @param {Exchange} one @param {string} kind @returns {Row[]} */
export const rowsOf = (one, kind) => one.rows.filter(({ event }) => event === kind);

/** The last row of a kind. @param {Exchange} one @param {string} kind */
export const lastOf = (one, kind) => one.rows.findLast(({ event }) => event === kind);

/** Utterances whose answers were stopped in this page; if no model had been called yet, the log has no row about it. */
export const stopped = signal(/** @type {ReadonlySet<number>} */ (new Set()));

/** Remember that an answer was stopped, or was requested again. @param {number} seq @param {boolean} is */
export function setStopped(seq, is) {
  stopped.value = new Set([...stopped.value].filter((each) => each !== seq).concat(is ? [seq] : []));
}

/** Seconds without an answer after which the exchange counts as abandoned, because the server has ended. */
const LOST_S = 600;

/** Return the state of an answer. @param {Exchange} one @returns {TalkerState} */
export function talkerState(one) {
  if (lastOf(one, "said")) return "done";
  const waiting = lastOf(one, "waiting");
  const call = rowsOf(one, "model_called").findLast(({ role, seq }) => role === "talker" && seq > (waiting?.seq ?? 0));
  if (call?.error) return call.error === "broken off" ? "stopped" : "failed";
  const isOver = one.isNow && (stopped.value.has(one.heard.seq) || Date.now() / 1000 - one.heard.at > LOST_S);
  if (isOver) return "stopped";
  return waiting && !one.rows.some(({ event, seq }) => (event === "thought" || event === "set_aside") && seq > waiting.seq) ? "waits" : "speaks";
}

/** Return whether a reasoner will still think about an exchange. @param {Exchange} one @param {Exchange[]} all */
export function isThoughtAbout(one, all) {
  if (lastOf(one, "decided")?.thinks === false) return false;
  const about = one.heard.seq;
  return !all.some(({ rows }) => rows.some((row) => (row.event === "thought" || row.event === "set_aside") && row.about.includes(about)));
}

/** The parts of an answer, in the order in which they began. @param {Exchange} one @returns {Span[]} */
export function spansOf(one) {
  const began = one.heard.at;
  /** @type {Span[]} */
  const found = [];
  const waiting = rowsOf(one, "waiting")[0];
  const said = lastOf(one, "said");
  for (const call of rowsOf(one, "model_called")) {
    const answered = call.role === "talker" && said && call.at - call.seconds < said.at;
    const ended = answered ? Math.min(call.at, said.at) : call.at; // the row of a call is written shortly after the answer that it gave
    const from = Math.max(0, ended - call.seconds - began);
    const first = call.first_part_s ?? undefined;
    /** @type {Span} */
    const span = { name: `${call.role}: ${call.prompt}`, from, to: Math.max(from, ended - began), kind: call.role === "talker" ? "talker" : "reasoner", seq: call.seq };
    found.push(first === undefined ? span : { ...span, first: Math.min(from + first, Math.max(from, ended - began)) });
  }
  for (const call of rowsOf(one, "tool_called")) {
    const gave = rowsOf(one, "observed").find(({ id }) => id && id === call.id);
    found.push({ name: `tool: ${call.tool}`, from: call.at - began, to: (gave ?? call).at - began, kind: "tool", seq: call.seq });
  }
  if (waiting) {
    const until = one.rows.find(({ event, seq }) => event === "thought" && seq > waiting.seq) ?? said;
    if (until) found.push({ name: "it waits", from: waiting.at - began, to: until.at - began, kind: "wait", seq: waiting.seq });
  }
  const calls = found.length;
  if (said) found.push({ name: calls ? "answered" : "answer", from: calls ? said.at - began : 0, to: said.at - began, kind: "moment", seq: said.seq });
  return found.sort((a, b) => a.from - b.from || a.seq - b.seq);
}

/** Seconds from the utterance to the complete answer. @param {Exchange} one */
export function tookOf(one) {
  const said = lastOf(one, "said");
  return said ? said.at - one.heard.at : undefined;
}
