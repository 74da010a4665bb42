/** The view of a town: its recording, which grows while the town runs, and the player that draws it. */
import { html, useEffect, useRef, useState } from "../../html.js";
import { Problem, useQuery } from "../../api.js";
import { base, change, linkTo, params, theme } from "../../state.js";
import { ReadFailure } from "../../parts/failure.js";
import { partsOf } from "../../town/links.js";
import { Player } from "../../town/player.js";
import { prepare } from "../../town/recording.js";
import { extend } from "../../town/growing.js";
import { Living } from "./living.js";
import { Beside } from "./beside.js";
import { parted } from "./fork.js";
import { optionsFor } from "./options.js";
import { Feed } from "./feed.js";

/** @typedef {import("../../town/player.js").Player} TownPlayer */

const QUIET_MS = 250; // delay in milliseconds until the link is updated
const NAMES = /** @type {const} */ (["t", "who", "place", "see"]);

/** Return the parameters of the link that concern the town. */
const said = () => new URLSearchParams(NAMES.map((name) => [name, params.value[name] ?? ""]).filter(([, value]) => value)).toString();

/** Open a recording at its first happening, and play it. @param {TownPlayer} player */
function begin(player) {
  player.toHappening(1);
  if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) player.play(true);
}

/** @param {{name: string}} props */
export function Watch({ name }) {
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const [player, keep] = useState(/** @type {TownPlayer | null} */ (null));
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const written = useRef("");
  const feed = useRef(/** @type {Feed | null} */ (null));
  const pair = useRef(/** @type {{beside: Beside, since: number} | null} */ (null));
  const { data } = useQuery({ path: "/towns" });
  const towns = /** @type {import("./fork.js").Towns | undefined} */ (data), other = towns?.towns.find((each) => each === params.value.beside && each !== name) ?? "";

  useEffect(() => {
    /** @type {TownPlayer | null} */
    let made = null;
    // The link is written only if the user has not opened another one since it was last written.
    const write = debounced((/** @type {TownPlayer} */ self) => { if (said() === written.current) written.current = writeLink(self); });
    const follow = feed.current = new Feed(name, {
      whole(recording) {
        const before = made, options = optionsFor(name, () => follow.soon(), () => pair.current);
        before?.close();
        made = new Player(prepare(recording), { ...options, href: (target) => linkTo("town", { town: name, ...named(made, target) }), told: (self, resting) => { if (resting) write(self); } });
        show(made, place.current);
        if (before) made.takeOver(before);
        else if (said() || base.value) made.open(new URLSearchParams(said()));
        else made.seek(made.town.last); // a town that lives is opened at its newest moment
        if (!before && base.value && !said()) begin(made);
        written.current = said();
        keep(made);
        tell(null);
      },
      part(recording) {
        if (!made) return;
        const before = made.town.last;
        extend(made.town, recording);
        made.renew(before);
      },
      failed: tell,
    });
    return () => { follow.close(); made?.close(); };
  }, [name, base.value]);

  useEffect(() => {
    if (player && said() !== written.current) player.open(new URLSearchParams(written.current = said()));
  }, [player, said()]);
  useEffect(() => {
    if (!player || !towns || !other) return undefined;
    const beside = new Beside(other, player, name, tell);
    pair.current = { beside, since: parted(towns, name, other) };
    player.state.list = "differences";
    return () => {
      pair.current = null;
      beside.close();
      if (player.state.list === "differences") player.state.list = "feed";
      if (player.node.isConnected) player.openPanel();
    };
  }, [player, other]);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)"), restyle = () => { player?.restyle(); pair.current?.beside.stage?.restyle(); };
    restyle();
    dark.addEventListener("change", restyle);
    return () => dark.removeEventListener("change", restyle);
  }, [player, theme.value]);

  return html`
    ${problem && !(player && isLost(problem)) && html`<${ReadFailure} problem=${problem} again=${() => feed.current?.soon()} />`}
    ${player && html`<${Living} name=${name} player=${player} soon=${() => feed.current?.soon()} />`}
    <div class="town-place" ref=${place} />`;
}

/** Return whether the server is unreachable; then the shell shows a message, and the map stays. @param {Error} problem */
const isLost = (problem) => problem instanceof Problem && problem.status === 0;

/** @param {TownPlayer} player @param {HTMLElement | null} place */
function show(player, place) {
  if (!place) return;
  place.replaceChildren(player.node);
  player.stage.resize();
  player.restyle();
}

/** @param {TownPlayer | null} player @param {import("../../town/links.js").Target} target */
function named(player, target) {
  return player ? Object.fromEntries(partsOf(player.town, target)) : {};
}

/** Store the shown moment in the link; return the link's parameters. @param {TownPlayer} player */
function writeLink(player) {
  const parts = Object.fromEntries(partsOf(player.town, { ...player.state, t: player.step }));
  change({ ...Object.fromEntries(NAMES.map((name) => [name, ""])), ...parts }, { quietly: true });
  return said();
}

/** @template T @param {(value: T) => void} act */
function debounced(act) {
  let timer = 0;
  return (/** @type {T} */ value) => { clearTimeout(timer); timer = window.setTimeout(() => act(value), QUIET_MS); };
}
