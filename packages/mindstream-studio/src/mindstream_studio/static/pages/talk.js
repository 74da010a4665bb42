/** The page Talk: a conversation, and beside it the state of the mind: running reasoners, beliefs, plan, thoughts. */
import { html } from "../html.js";
import { useQuery } from "../api.js";
import { base, params, seq, user } from "../state.js";
import { clockOf } from "../format.js";
import { Head } from "../parts/shell.js";
import { Empty } from "../parts/empty.js";
import { ReadFailure } from "../parts/failure.js";
import { TimeSlider } from "../parts/time_slider.js";
import { Beside } from "./talk/beside.js";
import { Choice } from "./talk/choice.js";
import { Composer } from "./talk/composer.js";
import { exchangesOf } from "./talk/exchanges.js";
import { Lines } from "./talk/lines.js";
import { useRows, useTalkRows } from "./talk/rows.js";
import { inWords } from "./talk/words.js";

/** @typedef {import("./talk/shapes.js").Session} Session @typedef {import("./talk/shapes.js").Row} Row */
/** @typedef {{packs: string[], pack: string}} Packs */

/** Return the conversation that the link names (a new one if the link also names a pack), or else the last one that began by the shown moment, or else the newest one. @param {Session[]} sessions @returns {Session} */
function chosen(sessions) {
  const { talk = "", pack } = params.value;
  const named = sessions.find(({ session }) => session === talk);
  if (named) return named;
  const at = seq.value;
  const ofRow = at === "newest" ? undefined : sessions.filter((each) => each.seq <= at).sort((a, b) => b.seq - a.seq)[0];
  const newest = [...sessions].sort((a, b) => b.last - a.last)[0];
  const fresh = { session: talk || "first", first: 0, last: 0, lines: 0, opening: "", seq: 0 };
  return talk && pack ? fresh : ofRow ?? newest ?? fresh;
}

export function Page() {
  const { data, problem, again } = useQuery({ path: "/users/{user}/sessions", query: { limit: 200 } }, { on: ["heard"] });
  const asked = useQuery(/** @type {import("../api.js").Ask | null} */ (base.value ? null : { path: "/answers" }));
  const found = /** @type {{sessions: Session[]} | undefined} */ (data);
  const packs = /** @type {Packs | undefined} */ (asked.data);
  if (problem) return html`<${ReadFailure} problem=${problem} again=${again} />`;
  if (!found) return null;
  const session = chosen(found.sessions);
  return html`<${Talk} key=${JSON.stringify([base.value, user.value, session.session])} session=${session} sessions=${found.sessions} packs=${packs} />`;
}

/** @param {{session: Session, sessions: Session[], packs: Packs | undefined}} props */
function Talk({ session, sessions, packs }) {
  const { rows, problem, again } = useRows(session.seq || undefined);
  const ours = useTalkRows(rows, session.session);
  const at = seq.value === "newest" ? Infinity : seq.value;
  const shown = ours?.filter((row) => row.seq <= at) ?? [];
  const exchanges = exchangesOf(shown, at === Infinity);
  const opened = ours?.findLast(({ event }) => event === "opened");
  const pack = String(opened?.pack || params.value.pack || packs?.pack || "");
  const stops = (ours ?? []).filter(({ event }) => event !== "opened").map((row) => row.seq);
  return html`
    <div class="page talk">
      <${Head} title="Talk">A conversation, and next to it the thoughts, beliefs and plan of the mind; each answer and each belief shows its reasons.<//>
      <div class="stack">
        <${Choice} session=${session} sessions=${sessions} pack=${pack} packs=${packs} />
        <${TimeSlider} most=${stops.at(-1) ?? 0} stops=${stops} label=${(/** @type {number} */ row) => momentOf(ours ?? [], row)} />
      </div>
      ${problem && html`<${ReadFailure} problem=${problem} again=${again} />`}
      <div class="columns panes">
        <section class="pane" aria-label="The conversation" tabindex="0">
          ${!exchanges.length && rows && html`<${Nothing} />`}
          <${Lines} exchanges=${exchanges} rows=${rows ?? []} at=${at} pack=${pack} />
        </section>
        <div class="below"><${Composer} session=${session} pack=${pack} exchanges=${exchanges} /></div>
        <section class="pane beside" aria-label="What goes on in the mind" tabindex="0">
          ${rows && exchanges.length > 0 && html`<${Beside} exchanges=${exchanges} rows=${rows} at=${at} from=${session.seq} />`}
        </section>
      </div>
    </div>`;
}

/** Return the label of a moment. @param {Row[]} rows @param {number} at */
function momentOf(rows, at) {
  const row = rows.findLast(({ seq: each }) => each <= at);
  return row ? `${clockOf(row.at)}, ${inWords(row)}` : `row ${at}`;
}

function Nothing() {
  if (seq.value !== "newest") return html`<${Empty} title="At that moment, nothing had been said"><p>Open a later moment.</p><//>`;
  if (base.value) return html`<${Empty} title="Nothing was said"><p>This recording contains no conversation with ${user.value}.</p><//>`;
  return html`
    <${Empty} title="Nothing has been said yet">
      <p>Say something below. While the answer is prepared, this page shows which reasoners are running, how beliefs and plan change, and how long each part takes.</p>
    <//>`;
}
