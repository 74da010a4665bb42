/** Compute beliefs and plans as of a moment: each version is the one before plus the changes of a row. */

/** @typedef {import("./shapes.js").Row} Row */
/**
 * @typedef {{value: unknown, since: number}} Item  `since`: the row that added the value
 * @typedef {{name: string, items: Item[], gone: unknown[], isList: boolean}} Field  `gone`: the values that the last change removed
 * @typedef {{slot: string, version: number, seq: number, fields: Map<string, Field>}} Belief  `seq`: the row of its last change
 * @typedef {{head: string, rest: string, isNew: boolean}} PlanStep
 * @typedef {{by: string, version: number, seq: number, at: number, changed: string, steps: PlanStep[]}} Plan
 */

/** @param {unknown} value */
const isEmpty = (value) => value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);

/** @param {unknown} value @param {Field | undefined} before @param {number} seq @returns {Omit<Field, "name">} */
function changedField(value, before, seq) {
  const given = isEmpty(value) ? [] : Array.isArray(value) ? value : [value];
  const known = new Map((before?.items ?? []).map((item) => [JSON.stringify(item.value), item]));
  const items = given.map((each) => known.get(JSON.stringify(each)) ?? { value: each, since: seq });
  const now = new Set(given.map((each) => JSON.stringify(each)));
  const gone = [...known].filter(([key]) => !now.has(key)).map(([, item]) => item.value);
  return { items, gone, isList: Array.isArray(value) };
}

/** @param {Row[]} rows @param {number} at @returns {Belief[]} by slot */
export function beliefsAt(rows, at) {
  /** @type {Map<string, Belief>} */
  const found = new Map();
  for (const row of rows) {
    if (row.seq > at) break;
    if (row.event !== "belief_changed") continue;
    const before = found.get(row.slot);
    const fields = new Map([...(before?.fields ?? [])].map(([name, field]) => [name, { ...field, gone: /** @type {unknown[]} */ ([]) }]));
    for (const [name, value] of Object.entries(row.patch)) fields.set(name, { name, ...changedField(value, fields.get(name), row.seq) });
    found.set(row.slot, { slot: row.slot, version: row.version, seq: row.seq, fields });
  }
  return [...found.values()];
}

/** Parse the text of a plan: a line that begins with "- " for each step, and its details indented below it. @param {string} text @returns {{head: string, rest: string}[]} */
export function stepsOf(text) {
  /** @type {{head: string, lines: string[]}[]} */
  const steps = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("- ")) steps.push({ head: line.slice(2), lines: [] });
    else if (steps.length) steps.at(-1)?.lines.push(line.trim());
    else if (line.trim()) steps.push({ head: line, lines: [] });
  }
  return steps.map(({ head, lines }) => ({ head, rest: lines.join("\n") }));
}

/** @param {Row[]} rows @param {number} at @returns {Plan[]} the newest plan of each reasoner */
export function plansAt(rows, at) {
  /** @type {Map<string, Plan>} */
  const found = new Map();
  for (const row of rows) {
    if (row.seq > at) break;
    if (row.event !== "plan_made") continue;
    const before = new Set(found.get(row.by)?.steps.map(({ head }) => head));
    const steps = stepsOf(row.text).map((step) => ({ ...step, isNew: !before.has(step.head) }));
    found.set(row.by, { by: row.by, version: row.version, seq: row.seq, at: row.at, changed: row.changed, steps });
  }
  return [...found.values()];
}

/** Return the thought that was written together with a change of a belief or plan. @param {Row[]} rows @param {number} seq of the change */
export function thoughtBehind(rows, seq) {
  const place = rows.findIndex((row) => row.seq === seq);
  const change = rows[place];
  if (!change) return undefined;
  return rows.slice(Math.max(0, place - 20), place + 1).findLast((row) => row.event === "thought" && row.slot === (change.slot ?? change.by) && row.at === change.at);
}
