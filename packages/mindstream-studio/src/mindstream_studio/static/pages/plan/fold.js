/** Compute the state of a run as of a row of the log. */

/** @typedef {import("./shapes.js").Row} Row @typedef {import("./shapes.js").Step} Step @typedef {import("./shapes.js").Plan} Plan */
/**
 * @typedef {{step: Step, began?: Row, found?: Row, state: "" | "now" | "ran" | "failed"}} SeenStep
 * @typedef {{task: string, how: string, plan: Plan | null, because: string[], steps: SeenStep[], seq: number,
 *   spent: import("./shapes.js").Spent | null, end: Row | null}} SeenRun
 */

/** @param {Row[]} rows oldest first @param {number} upto @returns {SeenRun} */
export function foldRows(rows, upto) {
  /** @type {SeenRun} */
  const seen = { task: "", how: "", plan: null, because: [], steps: [], seq: 0, spent: null, end: null };
  /** @type {Map<string, {began?: Row, found?: Row}>} */
  const done = new Map();
  for (const row of rows) {
    if (row.seq > upto) break;
    seen.seq = row.seq;
    seen.spent = row.spent ?? seen.spent;
    if (row.event === "solving") Object.assign(seen, { task: row.task, how: row.how, end: null });
    if (row.event === "run_planned") plan(seen, done, row);
    if (row.event === "answer_missing") seen.because.push(`The results of ${row.steps?.join(", ")} did not contain the answer, so the plan was to be revised.`);
    if (row.event === "plan_kept") seen.because.push("A revision left the plan unchanged.");
    if (row.event === "step_began") done.set(row.step ?? "", { began: row });
    if (row.event === "step_found") done.set(row.step ?? "", { ...done.get(row.step ?? ""), found: row });
    if (row.event === "solved") seen.end = row;
  }
  seen.steps = stepsOf(seen.plan, done).map((step) => withState(step, done.get(step.id)));
  return seen;
}

/** Apply a new plan; results of steps that have changed are dropped. @param {SeenRun} seen @param {Map<string, unknown>} done @param {Row} row */
function plan(seen, done, row) {
  const before = new Map((seen.plan?.steps ?? []).map((step) => [step.id, JSON.stringify([step.tool, step.arguments])]));
  for (const step of row.plan?.steps ?? []) {
    const was = before.get(step.id);
    if (was !== undefined && was !== JSON.stringify([step.tool, step.arguments])) done.delete(step.id);
  }
  seen.plan = row.plan ?? null;
}

/** Return the plan's steps, and steps that ran without a plan. @param {Plan | null} plan @param {Map<string, {began?: Row, found?: Row}>} done @returns {Step[]} */
function stepsOf(plan, done) {
  const planned = plan?.steps ?? [];
  const known = new Set(planned.map(({ id }) => id));
  /** @type {Step[]} */
  const more = [];
  for (const [id, { began, found }] of done) {
    if (known.has(id)) continue;
    const last = more.at(-1) ?? planned.at(-1);
    const given = found?.arguments ?? parsed(began?.arguments);
    more.push({ id, tool: began?.tool ?? found?.tool ?? "", arguments: given, after: last ? [last.id] : [] });
  }
  return [...planned, ...more];
}

/** Parse the arguments of a tool call. @param {any} text as stored in the log @returns {any} */
export function parsed(text) {
  if (typeof text !== "string" && text) return text;
  try {
    return JSON.parse(text ?? "{}");
  } catch {
    return { text };
  }
}

/** @param {Step} step @param {{began?: Row, found?: Row} | undefined} done @returns {SeenStep} */
function withState(step, done) {
  const { began, found } = done ?? {};
  const state = found ? (found.failed ? "failed" : "ran") : began ? "now" : "";
  return { step, state, ...(began ? { began } : {}), ...(found ? { found } : {}) };
}

/** Return the steps that a step waits for: those it refers to, and those in `after`. @param {Step} step */
export function needsOf(step) {
  const found = new Set(step.after ?? []);
  /** @param {any} value */
  const look = (value) => {
    if (Array.isArray(value)) value.forEach(look);
    else if (value && typeof value === "object") {
      if (typeof value.$ref === "string") found.add(value.$ref);
      Object.values(value).forEach(look);
    }
  };
  look(step.arguments ?? {});
  return [...found];
}

/** Return the outcome of a run in words, the same on every page. @param {{answer?: string, unanswered?: string, stopped?: string}} end */
export function endOf({ answer, unanswered, stopped }) {
  if (!answer) return "no answer";
  return unanswered || stopped ? "answered in part" : "answered";
}

/** Return a step's arguments as one line, with references as #E1. @param {unknown} value @returns {string} */
export function said(value) {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return String(value);
  const part = /** @type {any} */ (value);
  if (typeof part.$ref === "string") return `#${part.$ref}${(part.path ?? []).map((/** @type {any} */ key) => `[${key}]`).join("")}`;
  if (Array.isArray(part.$text)) return part.$text.map(said).join("");
  if (Array.isArray(value)) return value.map(said).join(", ");
  const entries = Object.entries(part);
  return entries.length === 1 ? said(entries[0]?.[1]) : entries.map(([name, each]) => `${name}: ${said(each)}`).join("; ");
}
