/**
 * The state of a page, which is stored in its link: `#/memory?user=ann&seq=120`.
 *
 * A link contains the page, the user, the moment (`seq`, a row of the log; without it the newest), `from=recorded` for shipped
 * recordings, and parameters of the page. All state is read from the link, so that reload and Back work.
 */
import { computed, effect, signal } from "./html.js";
import { held } from "./network.js";

/** @typedef {Record<string, string>} Params */
/** @typedef {"newest" | number} Seq */

/** Parameters that are kept when another page is opened. */
const KEPT = ["user", "seq", "from"];

const hash = signal(window.location.hash);
window.addEventListener("hashchange", () => { hash.value = window.location.hash; });

/** @param {string} text @returns {{page: string, params: Params}} */
export function readLink(text) {
  const [path = "", query = ""] = text.replace(/^#\/?/, "").split("?", 2);
  return { page: path, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string} page @param {Params} params */
export function writeLink(page, params) {
  const kept = Object.entries(params).filter(([, value]) => value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}

export const link = computed(() => readLink(hash.value));
export const page = computed(() => link.value.page);
export const params = computed(() => link.value.params);
/** Names of the users that the server knows, in alphabetical order; set by the shell. */
export const users = signal(/** @type {string[]} */ ([]));
/**
 * The shipped recordings; set by the shell.
 * @typedef {{page: string, title: string, who: string, user: string, town: string, pool: string, timed: boolean}} Recording
 */
export const recordings = signal(/** @type {Recording[]} */ ([]));
export const base = computed(() => (held || params.value.from === "recorded" ? "/recorded" : ""));
const theFirst = computed(() => (base.value ? recordings.value.find((each) => each.user)?.user : users.value[0]));
export const user = computed(() => params.value.user || theFirst.value || "you");
/** The moment that the page shows: a row of the log, or the newest. */
export const seq = computed(() => {
  const given = Number(params.value.seq);
  return /** @type {Seq} */ (Number.isSafeInteger(given) && given > 0 ? given : "newest");
});

/**
 * Make a link to a page; the user and the moment are kept unless `more` sets them.
 * @param {string} to
 * @param {Record<string, string | number>} [more] parameters; an empty string removes one
 */
export function linkTo(to, more = {}) {
  const here = params.value;
  const kept = Object.fromEntries(KEPT.filter((name) => here[name]).map((name) => [name, here[name] ?? ""]));
  const given = Object.fromEntries(Object.entries(more).map(([name, value]) => [name, String(value)]));
  return writeLink(to, { ...kept, ...given });
}

/** The link to a recording. @param {Recording} one */
export const linkToRecording = ({ page: to, user: of, town, pool }) => writeLink(to, { from: "recorded", user: of, town, pool });

/** The link to a page of the navigation. From a recording without that page, it leads to a recording with it. @param {string} to */
export function linkToPage(to) {
  const there = base.value ? recordings.value.filter((each) => each.page === to) : [];
  const [first] = there;
  return first && !there.some((each) => each.user === user.value) ? linkToRecording(first) : linkTo(to);
}

/** Return a function that says whether the link is still the same as now; for use after long operations. */
export function keepLink() {
  const here = window.location.hash;
  return () => window.location.hash === here;
}

/** @param {string} to @param {Record<string, string | number>} [more] */
export function go(to, more = {}) {
  window.location.hash = linkTo(to, more);
}

/**
 * Change parameters of this page's link; with `quietly` without an entry in the browser's history (for sliders).
 * @param {Record<string, string | number>} changes @param {{quietly?: boolean}} [how]
 */
export function change(changes, { quietly = false } = {}) {
  if (quietly && window.location.hash !== hash.value) return; // the user has opened another link in the meantime
  const given = Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, String(value)]));
  const next = writeLink(page.value, { ...params.value, ...given });
  if (quietly) window.history.replaceState(null, "", next);
  else window.history.pushState(null, "", next);
  hash.value = window.location.hash;
}

/** Use the browser's storage, if it is available; pages in a file may have none. @template T @param {(storage: Storage) => T} act */
function inStorage(act) {
  try {
    return act(window.localStorage);
  } catch {
    return undefined;
  }
}

/** @typedef {"system" | "light" | "dark"} Theme */
const THEME = "mindstream.theme";
const kept = inStorage((storage) => storage.getItem(THEME));
export const theme = signal(/** @type {Theme} */ (kept === "light" || kept === "dark" ? kept : "system"));
effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
  inStorage((storage) => storage.setItem(THEME, theme.value));
});
