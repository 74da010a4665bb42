/** A plan in the editor: its steps as typed, their faults, and the differences from the original plan. */

/** @typedef {import("./shapes.js").Plan} Plan @typedef {import("./shapes.js").Step} Step */
/** @typedef {{id: string, tool: string, given: string, why: string, after: string}} Typed `given`: the arguments as JSON */

/** @param {Plan} plan @returns {Typed[]} */
export function typedOf(plan) {
  return (plan.steps ?? []).map(({ id, tool, arguments: given = {}, why = "", after = [] }) => ({
    id, tool, given: JSON.stringify(given, null, 1), why, after: after.join(", "),
  }));
}

/** Add a step with the first free id. @param {Typed[]} typed @returns {Typed[]} */
export function withOneMore(typed) {
  const taken = new Set(typed.map(({ id }) => id));
  let number = 1;
  while (taken.has(`E${number}`)) number += 1;
  return [...typed, { id: `E${number}`, tool: typed.at(-1)?.tool ?? "calculator", given: "{}", why: "", after: "" }];
}

/**
 * Return the typed plan; `faults` has the reason for each step that cannot be read.
 * @param {string} task @param {Typed[]} typed @returns {{plan: Plan, faults: Map<string, string>}}
 */
export function readTyped(task, typed) {
  /** @type {Map<string, string>} */
  const faults = new Map();
  const steps = typed.map(({ id, tool, given, why, after }) => {
    if (!tool.trim()) faults.set(id, "Name the tool that this step calls.");
    const waits = after.split(/[\s,]+/).filter(Boolean);
    const unknown = waits.find((each) => !typed.some((other) => other.id === each));
    if (unknown) faults.set(id, `There is no step ${unknown} to wait for.`);
    /** @type {Step} */
    const step = { id, tool: tool.trim(), arguments: {} };
    try {
      const read = JSON.parse(given || "{}");
      if (read === null || typeof read !== "object" || Array.isArray(read)) throw new Error("write it in braces: {\"name\": …}");
      step.arguments = read;
    } catch (error) {
      faults.set(id, `The arguments are not a JSON object: ${/** @type {Error} */ (error).message}`);
    }
    if (why.trim()) step.why = why.trim();
    if (waits.length) step.after = waits;
    return step;
  });
  return { plan: { task, steps }, faults };
}

/** @param {Step | undefined} step */
const callOf = (step) => step && JSON.stringify([step.tool, step.arguments ?? {}, step.after ?? []]);

/** Describe the differences between two plans, one line per step. @param {Plan} before @param {Plan} after @returns {string[]} */
export function differences(before, after) {
  const old = new Map((before.steps ?? []).map((step) => [step.id, step]));
  const now = new Map((after.steps ?? []).map((step) => [step.id, step]));
  const gone = [...old.keys()].filter((id) => !now.has(id)).map((id) => `${id} is removed`);
  const rest = [...now].flatMap(([id, step]) => {
    const was = old.get(id);
    if (!was) return [`${id} is new: ${step.tool} ${JSON.stringify(step.arguments)}`];
    if (callOf(was) === callOf(step)) return [];
    const [before, after] = [was, step].map((one) => `${one.tool} ${JSON.stringify(one.arguments ?? {})}`);
    return [before === after ? `${id} comes after ${(step.after ?? []).join(", ") || "no step"}, not ${(was.after ?? []).join(", ") || "no step"}` : `${id} calls ${after} instead of ${before}`];
  });
  return [...gone, ...rest];
}

/** Save a plan to a file that `mindstream plan run` and this page can read. @param {Plan} plan */
export function savePlan(plan) {
  const address = URL.createObjectURL(new Blob([JSON.stringify(plan, null, 1)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "plan.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}

/** @param {string} text @returns {Plan} */
export function readPlan(text) {
  const found = JSON.parse(text);
  if (!Array.isArray(found?.steps)) throw new Error("This file contains no plan: a plan has a list of steps.");
  return { task: String(found.task ?? ""), steps: found.steps };
}
