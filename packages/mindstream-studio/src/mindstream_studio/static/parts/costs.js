/** Which model answered, and the cost, in the same words on every page. */
import { counted, dollars } from "../format.js";
import { base } from "../state.js";

/** @typedef {{model: string, cost_usd: number | null}} Priced */
/** @typedef {{cost_usd: number | null, unpriced?: number | null}} Sum  `unpriced`: number of calls without a known price; null: not counted */

const RECORDED = "playback:";

/** Shown instead of the cost of recorded answers: playing them back costs nothing. */
const NOT_CHARGED = "recorded, not charged";

/** Return who answered: a recorded model, rules, a fixed text in danger, or a live model. @param {string} model */
export function whoAnswered(model) {
  if (model === "rules") return "rules";
  if (model === "safety") return "a fixed text";
  return model.startsWith(RECORDED) ? `${model.slice(RECORDED.length)} (recorded)` : `${model} (live)`;
}

/** @param {Priced} call */
export function costOfCall({ model, cost_usd }) {
  if (model.startsWith(RECORDED)) return NOT_CHARGED;
  if (model === "rules") return "free";
  return cost_usd === null ? "price not known" : dollars(cost_usd);
}

/** The cost of several calls: not charged (recording), free (only rules), not known, or a sum. @param {Sum} sum */
export function costOf({ cost_usd, unpriced }) {
  if (cost_usd) return unpriced ? `${dollars(cost_usd)} and ${counted(unpriced, "call")} without a known price` : dollars(cost_usd);
  if (unpriced !== 0) return "price not known";
  return base.value ? NOT_CHARGED : "free";
}
