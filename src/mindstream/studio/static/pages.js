/** The pages, in the order of the navigation; a page is loaded when it is first opened. */
import { held } from "./network.js";

/** @typedef {{name: string, title: string, icon: string, load: () => Promise<{Page: () => any}>}} PageEntry */

/** @type {PageEntry[]} */
const ALL = [
  { name: "talk", title: "Talk", icon: "talk", load: () => import("./pages/talk.js") },
  { name: "memory", title: "Memory", icon: "memory", load: () => import("./pages/memory.js") },
  { name: "town", title: "Town", icon: "town", load: () => import("./pages/town.js") },
  { name: "plan", title: "Plan", icon: "plan", load: () => import("./pages/plan.js") },
  { name: "pools", title: "Pools", icon: "pools", load: () => import("./pages/pools.js") },
  { name: "life", title: "Life", icon: "life", load: () => import("./pages/life.js") },
  { name: "traces", title: "Traces", icon: "traces", load: () => import("./pages/traces.js") },
];

/** A saved page holds some of them. */
export const PAGES = ALL.filter(({ name }) => !held || held.includes(name));

/** Tell whether there is such a page: links to it are shown only then. @param {string} name */
export const isPage = (name) => PAGES.some((each) => each.name === name);
