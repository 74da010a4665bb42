/** The answer that is being generated. Its parts are not repeated by the server, and may arrive before the row of their utterance. */
import { signal } from "../../html.js";
import { onRow } from "../../events.js";

/** @typedef {{text: string, reads: boolean}} Spoken */

/** Maximum number of answers that are kept: the next may begin while one is generated. */
const MOST = 4;

/** Generated text by the row of the utterance. */
export const spoken = signal(/** @type {ReadonlyMap<number, Spoken>} */ (new Map()));

/** Discard the generated text of an utterance that is answered again. @param {number} heard */
export function clearSpoken(heard) {
  spoken.value = new Map([...spoken.value].filter(([each]) => each !== heard));
}

onRow(["piece", "reading"], ({ event, answers, text }) => {
  const before = spoken.value.get(answers)?.text ?? "";
  const now = event === "piece" ? { text: before + text, reads: false } : { text: before, reads: true };
  spoken.value = new Map([...spoken.value, /** @type {const} */ ([answers, now])].slice(-MOST));
});
