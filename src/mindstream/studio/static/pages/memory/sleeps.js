/** The sleeps of a mind: what each forgot and dreamt; sleep now, read the dream, undo it. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, askAndWait, useQuery } from "../../api.js";
import { base } from "../../state.js";
import { counted, timeOf } from "../../format.js";
import { askChange } from "../../parts/dialog.js";
import { ReadFailure } from "../../parts/failure.js";
import { Icon } from "../../parts/icons.js";
import { openSheet } from "../../parts/sheet.js";
import { Table } from "../../parts/table.js";

/**
 * @typedef {{seq: number, at: number, step: string, cause: number, looked_at: number, changed: number, records: string[],
 *   weakened: string[], text: string, error: string}} Step a row of the log
 * @typedef {{seq: number, at: number, forgot: number, weakened: number, dream: string, undone: boolean}} Sleep
 */

/** Put the steps of each sleep together, newest first. @param {Step[]} steps @returns {Sleep[]} */
export function sleepsOf(steps) {
  /** @type {Map<number, Sleep>} */
  const found = new Map();
  for (const { seq, at, step, cause, records, weakened, text } of steps) {
    if (step === "fading") found.set(seq, { seq, at, forgot: records.length, weakened: weakened.length, dream: "", undone: false });
    const sleep = found.get(cause);
    if (sleep && step === "dream") sleep.dream = text;
    if (sleep && step === "undo") sleep.undone = true;
  }
  return [...found.values()].reverse();
}

export function Sleeps() {
  const { data, problem, again } = useQuery({ path: "/users/{user}/log", query: { kinds: "slept", limit: 200 } }, { on: ["slept"] });
  const rows = /** @type {{rows: Step[]} | undefined} */ (data)?.rows;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  const sleeps = sleepsOf(rows ?? []);
  return html`
    <section class="stack" aria-label="Sleep">
      <div class="row"><h2>Sleep</h2>${!base.value && html`<${SleepNow} />`}</div>
      <p class="soft">Asleep, a mind lets go of what it has not used for long, and dreams of it.</p>
      ${sleeps.length > 0 && html`<${Table} caption="Sleeps, the newest first" columns=${COLUMNS} rows=${sleeps} />`}
    </section>`;
}

/** @type {import("../../parts/table.js").Column<Sleep>[]} */
const COLUMNS = [
  { title: "when", of: ({ at }) => timeOf(at) },
  { title: "forgot", of: ({ forgot }) => counted(forgot, "memory", "memories"), numeric: true },
  { title: "holds less well", of: ({ weakened }) => counted(weakened, "memory", "memories"), numeric: true },
  { title: "", of: (sleep) => html`<${Acts} sleep=${sleep} />` },
];

/** @param {{sleep: Sleep}} props */
function Acts({ sleep }) {
  if (sleep.undone) return html`<span class="soft">undone</span>`;
  return html`
    <span class="row">
      ${sleep.dream && html`<button class="link" onClick=${() => openDream(sleep)}>Read the dream</button>`}
      ${!base.value && html`<button class="link" onClick=${() => askUndo(sleep)}>Undo</button>`}
    </span>`;
}

/** @param {Sleep} sleep */
function openDream({ at, dream }) {
  openSheet({ title: `The dream of ${timeOf(at)}`, body: () => html`<p class="words">${dream}</p>` });
}

/** @param {Sleep} sleep */
function askUndo({ seq, at, forgot }) {
  askChange({
    title: `Undo the sleep of ${timeOf(at)}?`,
    verb: "Undo it",
    preview: async () => html`<p>${counted(forgot, "memory", "memories")} that it forgot are held again as they were. What it made, its dream too, goes to the archive. What has changed since stays as it is.</p>`,
    act: async () => { await ask({ path: "/users/{user}/memories/undo-sleep", body: { sleep: seq } }); askAllAgain(); },
  });
}

function SleepNow() {
  const [told, tell] = useState("");
  const sleep = () => askChange({
    title: "Let this mind sleep now?",
    verb: "Sleep",
    preview: async () => html`<p>Twenty memories are drawn. Those that nobody has recalled for two weeks are held less well, and the weakest are forgotten: out of reach, kept in the archive. A dream is made of what is forgotten. The sleep can be undone.</p>`,
    act: async () => {
      const done = /** @type {{dream: string}} */ (await askAndWait({ path: "/users/{user}/memories/sleep", body: {} }, tell));
      tell(done.dream ? "It has slept, and dreamt." : "It has slept. Nothing was forgotten, so nothing was dreamt.");
      askAllAgain();
    },
  });
  return html`<button onClick=${sleep}><span class="row"><${Icon} name="sleep" />Sleep now</span></button><span class="soft small" role="status">${told}</span>`;
}
