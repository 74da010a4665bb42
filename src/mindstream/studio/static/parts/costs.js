/** Who answered, and what it cost: said in the same words on every page. */
import { counted, dollars } from "../format.js";

/** @typedef {{model: string, cost_usd: number | null}} Priced */
/** @typedef {{cost_usd: number | null, unpriced?: number | null}} Sum  `unpriced`: calls whose price nobody knows; null: it was not counted */

const RECORDED = "playback:";

/** @param {string} model */
const isFree = (model) => model === "rules" || model.startsWith(RECORDED);

/** Who answered, and whether that was recorded, a stand-in, or live. @param {string} model */
export function whoAnswered(model) {
  if (model === "rules") return "a stand-in";
  if (model === "safety") return "words that are always said so";
  return model.startsWith(RECORDED) ? `${model.slice(RECORDED.length)} (recorded)` : `${model} (live)`;
}

/** @param {Priced} call */
export function costOfCall({ model, cost_usd }) {
  if (isFree(model)) return "free";
  return cost_usd === null ? "price not known" : dollars(cost_usd);
}

/** What many calls cost: free, not known, or a sum. @param {Sum} sum */
export function costOf({ cost_usd, unpriced }) {
  if (cost_usd) return unpriced ? `${dollars(cost_usd)} and ${counted(unpriced, "call")} without a known price` : dollars(cost_usd);
  return unpriced === 0 ? "free" : "price not known";
}
