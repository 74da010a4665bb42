// Path data in parts, so that of a large map only what is near is drawn.

import { at } from "./lists.js";

/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

export class Region {
  /** @param {string} path  of M, L, h, v, q and z, as town/inspect/layers.py writes it */
  constructor(path) {
    this.path = path;
    this.parts = path.split("M").slice(1).map((part) => ({ path: `M${part}`, box: boxOf(part) }));
    /** @type {Path2D | null} */
    this.drawn = null;
  }

  whole() {
    return this.drawn ??= new Path2D(this.path);
  }

  /** @param {Box} box */
  touches(box) {
    return this.parts.some((part) => meet(part.box, box));
  }

  /** @param {Box} box */
  within(box) {
    const near = this.parts.filter((part) => meet(part.box, box));
    return near.length === this.parts.length ? this.whole() : new Path2D(near.map((part) => part.path).join(""));
  }
}

/**
 * @param {Box} one
 * @param {Box} two
 */
const meet = (one, two) => one.left <= two.right && one.right >= two.left && one.top <= two.bottom && one.bottom >= two.top;

/**
 * @param {string} part  a path after its M
 * @returns {Box}
 */
function boxOf(part) {
  let [x, y] = [0, 0];
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const [, letter, numbers = ""] of `M${part}`.matchAll(/([MLhvqz])([^MLhvqz]*)/g)) {
    const found = (numbers.match(/-?(?:\d+\.?\d*|\.\d+)/g) ?? []).map(Number);
    if (letter === "h") x += at(found, 0);
    else if (letter === "v") y += at(found, 0);
    else if (letter === "q") [x, y] = [x + at(found, 2), y + at(found, 3)];
    else if (letter !== "z") [x, y] = [at(found, 0), at(found, 1)];
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return box;
}
