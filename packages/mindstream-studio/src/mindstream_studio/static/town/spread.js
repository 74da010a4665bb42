// Move the discs of residents apart, so that none hides another: first those on the same spot, then those that still overlap.

/** @import { Point } from "./types.js" */

const ROUNDS = 6;
const TURN = -Math.PI / 2;

/**
 * Return the position of each disc in pixels: near the resident's spot, and always the same.
 * @param {(Point | null)[]} points  in pixels; null: not drawn
 * @param {number} size  diameter of a disc with the space around it
 * @returns {(Point | null)[]}
 */
export function spread(points, size) {
  const found = ringed(points, size);
  for (let round = 0; round < ROUNDS; round++) if (!pushed(found, size)) break;
  return found;
}

/**
 * Place residents on the same spot around it, in the order of their numbers (see `place`).
 * @param {(Point | null)[]} points
 * @param {number} size
 */
function ringed(points, size) {
  /** @type {Map<string, number[]>} */
  const spots = new Map();
  points.forEach((point, number) => {
    if (!point) return;
    const key = `${Math.round(point[0])} ${Math.round(point[1])}`, there = spots.get(key);
    if (there) there.push(number);
    else spots.set(key, [number]);
  });
  const found = points.map((point) => /** @type {Point | null} */ (point && [point[0], point[1]]));
  for (const there of spots.values()) {
    there.forEach((number, i) => {
      const point = found[number];
      if (!point || there.length < 2) return;
      const [dx, dy] = place(i, there.length, size);
      found[number] = [point[0] + dx, point[1] + dy];
    });
  }
  return found;
}

/**
 * The position of one resident in a crowd: two side by side, up to six in a ring, more in rows.
 * @param {number} i
 * @param {number} count
 * @param {number} size
 * @returns {Point}
 */
function place(i, count, size) {
  if (count === 2) return [(i - 0.5) * size, 0];
  if (count <= 6) {
    const radius = size / (2 * Math.sin(Math.PI / count)), turn = TURN + (2 * Math.PI * i) / count;
    return [radius * Math.cos(turn), radius * Math.sin(turn)];
  }
  const across = Math.ceil(Math.sqrt(count * 1.4)), down = Math.ceil(count / across);
  return [((i % across) - (across - 1) / 2) * size, (Math.floor(i / across) - (down - 1) / 2) * size];
}

/**
 * Push overlapping discs apart, each by half of the overlap.
 * @param {(Point | null)[]} points
 * @param {number} size
 */
function pushed(points, size) {
  const cells = grid(points, size);
  let touched = false;
  points.forEach((one, number) => {
    if (!one) return;
    const column = Math.floor(one[0] / size), row = Math.floor(one[1] / size);
    for (let i = column - 1; i <= column + 1; i++) {
      for (let j = row - 1; j <= row + 1; j++) {
        for (const other of cells.get(i * 65_536 + j) ?? []) {
          const two = points[other];
          if (other > number && two && apart(one, two, size)) touched = true;
        }
      }
    }
  });
  return touched;
}

/**
 * @param {(Point | null)[]} points
 * @param {number} size
 */
function grid(points, size) {
  /** @type {Map<number, number[]>} */
  const cells = new Map();
  points.forEach((point, number) => {
    if (!point) return;
    const key = Math.floor(point[0] / size) * 65_536 + Math.floor(point[1] / size), there = cells.get(key);
    if (there) there.push(number);
    else cells.set(key, [number]);
  });
  return cells;
}

/**
 * @param {Point} one
 * @param {Point} two
 * @param {number} size
 */
function apart(one, two, size) {
  let [dx, dy] = [two[0] - one[0], two[1] - one[1]];
  const far = Math.hypot(dx, dy);
  if (far >= size * 0.98) return false;
  if (far < 0.01) [dx, dy] = [1, 0];
  const push = (size - far) / 2 / (far || 1);
  one[0] -= dx * push;
  one[1] -= dy * push;
  two[0] += dx * push;
  two[1] += dy * push;
  return true;
}
