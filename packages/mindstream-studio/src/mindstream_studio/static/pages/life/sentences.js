/** Rows of a life's log as sentences. */
import { timeOf } from "../../format.js";

/** @typedef {import("./shapes.js").Row} Row @typedef {{what: string, words: string}} Sentence */

/** @type {Record<string, string>} */
const WOKEN = { task: "a task", order: "a standing order", user: "a message to it", answer: "an answer to its question", goal: "its goal" };
/** @type {Record<string, string>} */
const TASKS = { open: "A task is open", waiting: "A task waits", done: "A task is done", stopped: "A task was given up" };
/** @type {Record<string, string>} */
const ORDERS = { pause: "It was paused", resume: "It was resumed", stop: "It was stopped" };

/** @type {Record<string, (row: Row) => Sentence>} */
const SENTENCES = {
  life_began: ({ goal }) => ({ what: "It was given a goal", words: goal }),
  turn_began: ({ turn, because }) => ({ what: `Turn ${turn} began because of ${WOKEN[because] ?? because}`, words: "" }),
  turn_ended: ({ turn, words, error }) => ({ what: error ? `Turn ${turn} could not continue` : `Turn ${turn} ended`, words: error || words }),
  task_changed: ({ standing, text, until, result }) => ({ what: `${TASKS[standing] ?? standing}${until ? ` until ${timeOf(until)}` : ""}`, words: result ? `${text}\n${result}` : text }),
  questioned: ({ tip }) => ({ what: "It asked you", words: tip }),
  answered: ({ text }) => ({ what: "You answered", words: text }),
  leave_asked: ({ tool, arguments: given }) => ({ what: `It asked for permission to call ${tool}`, words: given }),
  leave_given: ({ yes }) => ({ what: yes ? "You allowed a call" : "You refused a call", words: "" }),
  commanded: ({ order, because }) => ({ what: ORDERS[order] ?? order, words: because }),
  rested: ({ because }) => ({ what: because ? "It rests" : "It continues", words: because }),
  noticed: ({ text }) => ({ what: "An event was reported to it", words: text }),
  heard: ({ text }) => ({ what: "It was told", words: text }),
  folded: ({ since, upto, text }) => ({ what: `Turns ${since} to ${upto} were condensed into a memory`, words: text }),
  replied: ({ role, text, calls, error }) => ({
    what: error ? `${role} did not answer` : `${role} said`,
    words: [error || text, ...(calls ?? []).map((/** @type {any} */ call) => `→ ${call.tool} ${call.arguments}`)].filter(Boolean).join("\n"),
  }),
  observed: ({ tool, text, failed }) => ({ what: failed ? `${tool} failed` : `${tool} gave`, words: text }),
};

/** Kinds of rows that a turn's view shows in addition to those of the diary. */
export const STEPS = ["replied", "observed"];

/** @param {Row} row @returns {Sentence | null} */
export function sentenceOf(row) {
  return SENTENCES[row.event]?.(row) ?? null;
}
