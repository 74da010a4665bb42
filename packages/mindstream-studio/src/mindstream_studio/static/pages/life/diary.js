/** The diary of a life, turn by turn, newest first; a turn can be opened to show its steps. */
import { html, useState } from "../../html.js";
import { ask, useQuery } from "../../api.js";
import { base, seq, user } from "../../state.js";
import { timeOf } from "../../format.js";
import { ReadFailure } from "../../parts/failure.js";
import { openSheet } from "../../parts/sheet.js";
import { sentenceOf } from "./sentences.js";
import { Turn } from "./turn.js";
import { DIARY } from "./shapes.js";

/** @typedef {import("./shapes.js").Row} Row */

const A_PAGE = 100;

export function Diary() {
  const at = seq.value;
  const query = { newest: true, limit: A_PAGE, kinds: DIARY.join(), ...(at === "newest" ? {} : { upto: at }) };
  const { data, problem, again } = useQuery({ path: "/users/{user}/log", query }, { on: DIARY });
  const first = /** @type {{rows: Row[], next: string} | undefined} */ (data);
  const key = JSON.stringify([user.value, base.value, at, first?.rows[0]?.seq]);
  const [kept, keep] = useState(/** @type {{key: string, rows: Row[], next: string} | null} */ (null));
  const more = kept?.key === key ? kept : null;
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  const rows = [...(first?.rows ?? []), ...(more?.rows ?? [])];
  const next = more ? more.next : first?.next;
  const earlier = async () => {
    const page = /** @type {{rows: Row[], next: string}} */ (await ask({ path: "/users/{user}/log", query: { ...query, cursor: next ?? "" } }));
    keep({ key, rows: [...(more?.rows ?? []), ...page.rows], next: page.next });
  };
  return html`
    <section class="stack" aria-label="Diary">
      <h2>Diary</h2>
      ${first && rows.length === 0 && html`<p class="soft">${at === "newest" ? "Nothing has happened yet." : "Nothing had happened yet at that moment."}</p>`}
      <ol class="list">${rows.map((row) => html`<${Entry} key=${row.seq} row=${row} />`)}</ol>
      ${next && html`<div><button onClick=${earlier}>Earlier</button></div>`}
    </section>`;
}

/** @param {{row: Row}} props */
function Entry({ row }) {
  const said = sentenceOf(row);
  if (!said) return null;
  const isTurn = row.event === "turn_began";
  const open = () => openSheet({ title: `Turn ${row.turn}`, body: () => html`<${Turn} began=${row} />` });
  return html`
    <li>
      <div class="row small soft"><span>${said.what}</span><span class="push number">${timeOf(row.at)}</span></div>
      ${said.words && html`<p class="words clip">${said.words}</p>`}
      ${isTurn && html`<button class="link small" onClick=${open} aria-label=${`Show turn ${row.turn} step by step`}>step by step</button>`}
    </li>`;
}
