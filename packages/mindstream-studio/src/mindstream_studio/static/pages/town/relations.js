/** The relations at a moment: which residents know each other, how often they talked, and the density of the network. */
import { html } from "../../html.js";
import { useQuery } from "../../api.js";
import { counted, percent } from "../../format.js";
import { Chart } from "../../parts/chart.js";
import { ReadFailure } from "../../parts/failure.js";
import { momentOf } from "../../town/times.js";
import { Name } from "./facts.js";

/** @typedef {import("../../town/player.js").Player} Player */
/** @typedef {{names: string[], since: number, talks: number[]}} Pair */
/** @typedef {{residents: string[], pairs: Pair[], curve: [number, number][]}} Found */

const SHOWN = 60;

/** @param {{town: string, player: Player, step: number}} props */
export function Relations({ town, player, step }) {
  const { data, problem } = useQuery({ path: `/towns/${encodeURIComponent(town)}/relations` });
  const found = /** @type {Found | undefined} */ (data);
  if (problem) return html`<${ReadFailure} problem=${problem} />`;
  if (!found) return null;
  const known = found.pairs.filter((pair) => pair.since <= step).map((pair) => ({ ...pair, talked: pair.talks.filter((each) => each <= step).length }));
  const density = found.curve.filter(([at]) => at <= step).at(-1)?.[1] ?? 0, last = found.curve.at(-1)?.[1] ?? 0;
  return html`
    <p class="soft small">${counted(known.length, "pair knows", "pairs know")} each other by now: ${percent(density)} of all.</p>
    ${found.curve.length > 1 && html`
      <${Chart} title="Of all pairs of residents, the share who know each other" xs=${found.curve.map(([at]) => player.town.start + at * player.town.seconds)} times=${true} from=${0} to=${Math.max(0.1, last)}
        curves=${[{ label: "density", values: found.curve.map(([, value]) => value) }]} sayY=${percent}
        words=${`From ${percent(found.curve[0]?.[1] ?? 0)} at the beginning to ${percent(last)}.`} />`}
    <ul class="list">
      ${known.sort((a, b) => b.talked - a.talked).slice(0, SHOWN).map(({ names, since, talked }) => html`
        <li key=${names.join()}><p><${Name} player=${player} name=${names[0] ?? ""} /> and <${Name} player=${player} name=${names[1] ?? ""} /></p>
          <p class="soft small">${since ? `since ${momentOf(player.town, since)}` : "from the beginning"}${talked ? `, ${counted(talked, "talk")}` : ", no talk yet"}</p></li>`)}
    </ul>`;
}
