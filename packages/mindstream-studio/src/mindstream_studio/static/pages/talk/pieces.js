/** The answer that is being generated. Its parts are not repeated by the server, and may arrive before the row of their utterance. */
import { signal } from "../../html.js";
import { onRow } from "../../events.js";

/** @typedef {{text: string, reads: boolean}} Spoken */

/** So many answers are kept: one may be spoken while the next is begun. */
const MOST = 4;

/** By the row of what was heard. */
export const spoken = signal(/** @type {ReadonlyMap<number, Spoken>} */ (new Map()));

/** Forget what was said, since it is answered anew. @param {number} heard */
export function clearSpoken(heard) {
  spoken.value = new Map([...spoken.value].filter(([each]) => each !== heard));
}

onRow(["piece", "reading"], ({ event, answers, text }) => {
  const before = spoken.value.get(answers)?.text ?? "";
  const now = event === "piece" ? { text: before + text, reads: false } : { text: before, reads: true };
  spoken.value = new Map([...spoken.value, /** @type {const} */ ([answers, now])].slice(-MOST));
});
