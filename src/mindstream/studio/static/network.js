/** How questions leave the page; a page that was saved to a file has `saved/packed.js` in its place. */

/** The pages that a file holds; null: this is the live studio. */
export const held = /** @type {string[] | null} */ (null);

/** @param {string} address @param {RequestInit} [init] */
export const request = (address, init) => fetch(address, init);
