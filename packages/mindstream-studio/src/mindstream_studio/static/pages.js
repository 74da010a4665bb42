/** The pages, in the order of the navigation; the module and style sheet of a page are loaded when it is first opened. */
import { held } from "./network.js";

/** Load a style sheet; a saved file contains it already. @param {string} path @returns {Promise<unknown>} */
export function styled(path) {
  if (held) return Promise.resolve();
  const link = document.createElement("link");
  Object.assign(link, { rel: "stylesheet", href: path });
  const there = new Promise((resolve, reject) => { link.onload = resolve; link.onerror = () => { link.remove(); reject(new Error(`${path} could not be fetched.`)); }; });
  document.head.append(link);
  return there;
}

/**
 * @param {string[]} sheets @param {() => Promise<{Page: () => any}>} module
 * @returns {() => Promise<{Page: () => any}>}
 */
const dressed = (sheets, module) => () => Promise.all([module(), ...sheets.map(styled)]).then(([made]) => made);

/** @typedef {{name: string, title: string, icon: string, load: () => Promise<{Page: () => any}>}} PageEntry */

/** @type {PageEntry[]} */
const ALL = [
  { name: "talk", title: "Talk", icon: "talk", load: dressed(["pages/talk/talk.css"], () => import("./pages/talk.js")) },
  { name: "memory", title: "Memory", icon: "memory", load: dressed(["pages/memory/memory.css"], () => import("./pages/memory.js")) },
  { name: "town", title: "Town", icon: "town", load: dressed(["town/town.css", "pages/town/town.css"], () => import("./pages/town.js")) },
  { name: "plan", title: "Plan", icon: "plan", load: dressed(["pages/plan/plan.css"], () => import("./pages/plan.js")) },
  { name: "pools", title: "Pools", icon: "pools", load: dressed(["pages/pools/pools.css"], () => import("./pages/pools.js")) },
  { name: "life", title: "Life", icon: "life", load: dressed(["pages/life/life.css"], () => import("./pages/life.js")) },
  { name: "traces", title: "Traces", icon: "traces", load: dressed(["pages/traces/traces.css"], () => import("./pages/traces.js")) },
];

/** A saved file contains some of the pages. */
export const PAGES = ALL.filter(({ name }) => !held || held.includes(name));

/** Return whether a page exists here; links are shown only to existing pages. @param {string} name */
export const isPage = (name) => PAGES.some((each) => each.name === name);
