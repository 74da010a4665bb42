// A town's page that was saved to a file: the recording is in it, the address names the moment.

import { iconButton, make } from "./elements.js";
import { partsOf } from "./links.js";
import { Player } from "./player.js";
import { prepare } from "./recording.js";
import { unpack } from "../saved/unpack.js";

const PASSING_MS = 4000;

const notice = make("p", { class: "notice", role: "status" });

/**
 * Show a message for PASSING_MS.
 * @param {string} text
 */
function notify(text) {
  notice.textContent = text;
  setTimeout(() => { if (notice.textContent === text) notice.textContent = ""; }, PASSING_MS);
}

/** Light or dark theme, independent of the system's setting. */
function changeTheme() {
  const { dataset } = document.documentElement, dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
}

/**
 * Store the current moment in the page's address, so that the address can be shared.
 * @param {Player} player
 */
function writeAddress(player) {
  const hash = `#${partsOf(player.town, { ...player.state, t: player.step })}`;
  try {
    if (location.hash !== hash) history.replaceState(null, "", hash);
  } catch { /* some browsers allow it only so often */ }
}

/** @param {Player} player */
async function copyLink(player) {
  writeAddress(player);
  try {
    await navigator.clipboard.writeText(location.href);
    notify("The link to this moment is copied.");
  } catch {
    notify("The link could not be copied. It is this page’s address.");
  }
}

/** @param {HTMLElement} page */
async function start(page) {
  if (typeof DecompressionStream === "undefined" || !CSS.supports("color", "light-dark(red, red)")) throw new Error("this browser is too old; use one of 2024 or later");
  const packed = document.getElementById("recording");
  const town = prepare(await unpack((packed?.textContent ?? "").replace(/\s/g, "")));
  const theme = () => { changeTheme(); player.restyle(); };
  const player = new Player(town, { notify, theme, told: (self, resting) => resting && writeAddress(self) });
  page.prepend(make("header", {}, make("h1", { dir: "auto" }, town.town), player.clock, notice, make("nav", { "aria-label": "Page" },
    iconButton("link", "Copy a link to this moment", () => copyLink(player)), iconButton("theme", "Light or dark", theme, "d"))));
  page.append(player.node);
  player.stage.resize();
  player.restyle();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => player.restyle());
  addEventListener("hashchange", () => player.open(new URLSearchParams(location.hash.slice(1))));
  player.open(new URLSearchParams(location.hash.slice(1)));
  player.draw(performance.now());
  document.documentElement.dataset.ready = "";
}

const page = document.querySelector("main") ?? document.body;
start(page).catch((error) => page.replaceChildren(make("p", { class: "notice" }, `The recording cannot be played: ${error.message}.`)));
