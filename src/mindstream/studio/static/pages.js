/** The pages, in the order of the navigation; a page is loaded when it is first opened. */

/** @typedef {{name: string, title: string, icon: string, load: () => Promise<{Page: () => any}>}} PageEntry */

/** @type {PageEntry[]} */
export const PAGES = [
  { name: "talk", title: "Talk", icon: "talk", load: () => import("./pages/talk.js") },
  { name: "memory", title: "Memory", icon: "memory", load: () => import("./pages/memory.js") },
  { name: "town", title: "Town", icon: "town", load: () => import("./pages/town.js") },
  { name: "plan", title: "Plan", icon: "plan", load: () => import("./pages/plan.js") },
  { name: "pools", title: "Pools", icon: "pools", load: () => import("./pages/pools.js") },
  { name: "life", title: "Life", icon: "life", load: () => import("./pages/life.js") },
  { name: "traces", title: "Traces", icon: "traces", load: () => import("./pages/traces.js") },
];

/** Tell whether there is such a page: links to it are shown only then. @param {string} name */
export const isPage = (name) => PAGES.some((each) => each.name === name);
