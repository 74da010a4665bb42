// Place speech bubbles beside their residents, without covering each other, residents or names of places.

/** @typedef {{x: number, y: number, wide: number, high: number}} Rect */
/** @typedef {{number: number, x: number, y: number, wide: number, high: number, weight: number, forced: boolean}} Wish  the middle of a resident; a bubble's size */

const GAP = 5;
const EDGE = 4;
const STAY = 0.35; // maximum covered share of a bubble before it moves to another side

/**
 * @param {Rect} one
 * @param {Rect} two
 */
export function covered(one, two) {
  const wide = Math.min(one.x + one.wide, two.x + two.wide) - Math.max(one.x, two.x);
  const high = Math.min(one.y + one.high, two.y + two.high) - Math.max(one.y, two.y);
  return wide > 0 && high > 0 ? wide * high : 0;
}

export class Labels {
  constructor() {
    /** @type {Map<number, number>} */
    this.sides = new Map();
  }

  /**
   * Find a place for each bubble, the most important first; a bubble without room is left out unless it is forced.
   * @param {Wish[]} wishes
   * @param {Rect[]} dots
   * @param {Rect[]} names
   * @param {[number, number]} size  of the canvas
   * @param {number} radius  of a resident
   */
  place(wishes, dots, names, size, radius) { // names: rectangles of place names and other marks on the map
    /** @type {Map<number, Rect & {side: number}>} */
    const placed = new Map();
    const sides = new Map();
    for (const wish of wishes.sort((a, b) => b.weight - a.weight || a.number - b.number)) {
      const found = this.best(wish, [...placed.values()], dots, names, size, radius);
      if (!found) continue;
      placed.set(wish.number, found);
      sides.set(wish.number, found.side);
    }
    this.sides = sides;
    return placed;
  }

  /**
   * @param {Wish} wish
   * @param {Rect[]} placed
   * @param {Rect[]} dots
   * @param {Rect[]} names
   * @param {[number, number]} size
   * @param {number} radius
   */
  best(wish, placed, dots, names, size, radius) {
    const area = wish.wide * wish.high, before = this.sides.get(wish.number);
    let best = null, least = Infinity, hidden = 0;
    for (const [side, rect] of around(wish, radius, size).entries()) {
      let cost = 0;
      for (const other of placed) cost += 3 * covered(rect, other);
      for (const dot of dots) cost += 3 * covered(rect, dot);
      for (const name of names) cost += covered(rect, name);
      const wished = cost + side * area * 0.012 - (side === before ? STAY * area : 0);
      if (wished < least) [best, least, hidden] = [{ ...rect, side }, wished, cost];
    }
    return wish.forced || hidden < area * 0.05 ? best : null;
  }
}

/**
 * Return the candidate positions above, below, right, left and diagonal, inside the canvas.
 * @param {Wish} wish
 * @param {number} radius
 * @param {[number, number]} size
 * @returns {Rect[]}
 */
function around({ x, y, wide, high }, radius, [width, height]) {
  const across = Math.max(EDGE, Math.min(width - wide - EDGE, x - wide / 2)), down = Math.max(EDGE, Math.min(height - high - EDGE, y - high / 2));
  /** @type {[number, number][]} */
  const corners = [[across, y - radius - GAP - high], [across, y + radius + GAP], [x + radius + GAP, down], [x - radius - GAP - wide, down]];
  for (const top of [y - radius - GAP - high, y + radius + GAP]) corners.push([x - radius / 2, top], [x + radius / 2 - wide, top]);
  const all = corners.map(([left, top]) => ({ x: left, y: top, wide, high }));
  const within = all.filter((rect) => rect.x >= 0 && rect.y >= 0 && rect.x + wide <= width && rect.y + high <= height);
  return within.length ? within : [{ x: across, y: Math.max(EDGE, y - radius - GAP - high), wide, high }];
}
