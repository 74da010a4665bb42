/** The sleeps of a mind: memories that faded and the dream of each; start a sleep, read the dream, undo a sleep. */
import { html, useState } from "../../html.js";
import { ask, askAllAgain, askAndWait, useQuery } from "../../api.js";
import { base, change } from "../../state.js";
import { counted, timeOf } from "../../format.js";
import { whoAnswered } from "../../parts/costs.js";
import { askChange } from "../../parts/dialog.js";
import { ReadFailure } from "../../parts/failure.js";
import { Icon } from "../../parts/icons.js";
import { closeSheet, openSheet } from "../../parts/sheet.js";
import { Table } from "../../parts/table.js";

/** @typedef {import("./shapes.js").Night} Night @typedef {import("./shapes.js").Memory} Memory */

const MOST_READ = 50;

/** @param {string} id */
const pathOf = (id) => `/users/{user}/memories/${encodeURIComponent(id)}`;

export function Sleeps() {
  const { data, problem, again } = useQuery({ path: "/users/{user}/nights", query: { limit: 20 } }, { on: ["slept"] });
  const nights = /** @type {{nights: Night[]} | undefined} */ (data)?.nights ?? [];
  return html`
    <section class="stack" aria-label="Sleep">
      <p class="soft">A sleep maintains the memory. With the retention “keep” (the default), nothing fades. With “decay”, memories that are unused for a long time fade: they are archived, and the mind writes a dream, which is a summary of them. A sleep can be undone.</p>
      ${!base.value && html`<div class="row"><${SleepNow} /></div>`}
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      ${nights.length > 0 && html`<${Table} caption="Sleeps, the newest first" columns=${COLUMNS} rows=${nights} />`}
    </section>`;
}

/** @type {import("../../parts/table.js").Column<Night>[]} */
const COLUMNS = [
  { title: "when", of: ({ at }) => timeOf(at) },
  { title: "looked at", of: ({ looked_at }) => looked_at, numeric: true },
  { title: "made weaker", of: ({ weakened }) => weakened.length, numeric: true },
  { title: "faded", of: ({ forgotten }) => forgotten.length, numeric: true },
  { title: "", of: (night) => html`<${Acts} night=${night} />` },
];

/** @param {{night: Night}} props */
function Acts({ night }) {
  const touched = night.forgotten.length + night.weakened.length + night.merged_into.length > 0;
  return html`
    <span class="row">
      ${(touched || night.dream) && html`<button class="link" onClick=${() => openNight(night)}>${night.dream ? "Read the dream" : "Show the changes"}</button>`}
      ${night.undone ? html`<span class="soft">undone</span>` : !base.value && html`<button class="link" onClick=${() => askUndo(night)}>Undo</button>`}
    </span>`;
}

/** @param {Night} night */
function openNight(night) {
  openSheet({ title: `The sleep of ${timeOf(night.at)}`, body: () => html`<${Inside} night=${night} />` });
}

/** @param {{night: Night}} props */
function Inside({ night }) {
  return html`
    ${night.dream && html`
      <h3>The dream</h3><p class="words card">${night.dream}</p>
      ${night.dreamt_by && html`<p class="soft small">dreamt by ${whoAnswered(night.dreamt_by)}</p>`}`}
    <${Touched} title="Faded: archived, no longer found by a search" ids=${night.forgotten} />
    <${Touched} title="Made weaker by this sleep" ids=${night.weakened} />
    <${Touched} title="Memories into which near-duplicates were merged" ids=${night.merged_into} />
    ${night.errors.map((error) => html`<p class="problem words">${error}</p>`)}`;
}

/** @param {{title: string, ids: string[]}} props */
function Touched({ title, ids }) {
  if (!ids.length) return null;
  return html`<h3>${title}</h3><ul class="list">${ids.slice(0, MOST_READ).map((id) => html`<${One} key=${id} id=${id} />`)}</ul>`;
}

/** @param {{id: string}} props */
function One({ id }) {
  const { data, problem } = useQuery({ path: pathOf(id) });
  const memory = /** @type {Memory | undefined} */ (data);
  const open = () => { closeSheet(); change({ id }); };
  if (problem) return html`<li class="soft">This memory cannot be read; it may have been permanently deleted.</li>`;
  return html`<li>${memory && html`<button class="item words clip" onClick=${open}>${memory.text}</button>`}</li>`;
}

/** @param {Night} night */
function askUndo({ sleep, at, forgotten, weakened }) {
  askChange({
    title: `Undo the sleep of ${timeOf(at)}?`,
    verb: "Undo it",
    preview: async () => html`
      <p>${counted(forgotten.length, "memory that faded is", "memories that faded are")} restored, and ${counted(weakened.length, "memory that became weaker is", "memories that became weaker are")} as strong as before.</p>
      <p>The dream and the merged memories that this sleep wrote are archived; the near-duplicates that they replaced are restored. Weaker memories that were recalled or forgotten after the sleep stay as they are.</p>
      <p>The sleep cannot be undone if one of these happened after it:</p>
      <ul>
        <li>A memory that faded or was merged was changed or forgotten.</li>
        <li>A merged memory that the sleep wrote was corrected or forgotten.</li>
        <li>The dream was corrected.</li>
      </ul>`,
    act: async () => { await ask({ path: "/users/{user}/memories/undo-sleep", body: { sleep } }); askAllAgain(); },
  });
}

function SleepNow() {
  const [told, tell] = useState("");
  const sleep = () => askChange({
    title: "Let this mind sleep now?",
    verb: "Sleep",
    preview: async () => html`
      <p>With retention “decay”: some memories (20 by default) are drawn at random. Those that were not recalled for a time (two weeks by default) become weaker, and the weakest fade: they are archived, and no search finds them. The mind writes a dream, a summary of what fades. Near-duplicates are merged, and expired memories are archived. With “keep” (the default), none of this happens.</p>
      <p>The sleep can be undone, except that expired memories stay archived.</p>`,
    act: async () => {
      const done = /** @type {{dream: string}} */ (await askAndWait({ path: "/users/{user}/memories/sleep", body: {} }, tell));
      tell(done.dream ? "The mind has slept, and written a dream." : "The mind has slept. There is no dream: nothing faded, or no model could write one.");
      askAllAgain();
    },
  });
  return html`<button onClick=${sleep}><span class="row"><${Icon} name="sleep" />Sleep now</span></button><span class="soft small" role="status">${told}</span>`;
}
