/** The pages, in the order of the navigation; a page is loaded when it is first opened. */

/** @typedef {{name: string, title: string, icon: string, load: () => Promise<{Page: () => any}>}} PageEntry */

/** @type {PageEntry[]} */
export const PAGES = [
  { name: "memory", title: "Memory", icon: "memory", load: () => import("./pages/memory.js") },
  { name: "life", title: "Life", icon: "life", load: () => import("./pages/life.js") },
];

/** Tell whether there is such a page: links to it are shown only then. @param {string} name */
export const isPage = (name) => PAGES.some((each) => each.name === name);
