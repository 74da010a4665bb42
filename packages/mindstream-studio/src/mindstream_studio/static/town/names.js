// Names of places on the map: as large as there is room for, never overlapping, faded under a bubble.

import { covered } from "./labels.js";

/** @import { Camera } from "./camera.js" */
/** @import { Colours } from "./colours.js" */
/** @import { Rect } from "./labels.js" */
/** @import { Lettering } from "./lettering.js" */
/** @import { Recording } from "./types.js" */

const SMALLEST = 10, LARGEST = 15; // font size in pixels
const EDGE = 6; // minimum pixels between a name and the edge of the map
const FADE = 0.2; // share of the remaining change of opacity per frame

/** @typedef {{x: number, y: number, size: number, lines: string[], wide: number, high: number, seen: number, up: number}} Name */

export class Names {
  /** @param {Recording} town */
  constructor(town) {
    this.all = town.map.names;
    this.scale = 0;
    /** @type {Name[]} */
    this.shown = [];
  }

  /**
   * Select the names for which there is room.
   * @param {number} scale  pixels of a tile
   * @param {Lettering} lettering
   * @param {string} family
   */
  fit(scale, lettering, family) {
    if (scale === this.scale) return;
    this.scale = scale;
    /** @type {Rect[]} */
    const taken = [];
    this.shown = [];
    for (const [x, y, base, lines] of [...this.all].sort((a, b) => b[2] - a[2])) {
      const size = Math.round(Math.min(LARGEST, Math.max(SMALLEST, base * scale)));
      if (base * scale < SMALLEST / 2.4) continue;
      const wide = Math.max(...lines.map((line) => lettering.width(line, font(size, family)))), high = size * 1.2 * lines.length;
      const rect = { x: x * scale - wide / 2, y: y * scale - size, wide, high };
      if (taken.some((other) => covered(rect, other) > 0)) continue;
      taken.push(rect);
      this.shown.push({ x, y, size, lines, wide, high, seen: 1, up: 0 });
    }
  }

  /**
   * @param {Camera} camera
   * @returns {(Rect & {name: Name})[]}
   */
  rects(camera) {
    const [width, height] = camera.pixels;
    return this.shown.map((name) => {
      const [x, y] = camera.toPixels([name.x, name.y]), left = x - name.wide / 2;
      const within = x > 0 && x < width ? Math.max(EDGE, Math.min(width - name.wide - EDGE, left)) : left;
      return { name, x: within, y: y - name.size - name.up, wide: name.wide, high: name.high };
    }).filter((rect) => rect.x < width && rect.y < height && rect.x + rect.wide > 0 && rect.y + rect.high > 0);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(Rect & {name: Name})[]} rects
   * @param {Rect[]} bubbles
   * @param {Rect[]} dots
   * @param {Colours} colours
   * @param {boolean} atOnce
   * @returns {boolean} whether some are still fading
   */
  draw(context, rects, bubbles, dots, colours, atOnce) {
    let fading = false;
    [context.textAlign, context.lineJoin, context.fillStyle, context.strokeStyle] = ["center", "round", colours.name, colours.halo];
    for (const { name, x, y, wide, high } of rects) {
      const higher = raised({ x, y: y + name.up, wide, high }, dots, name.size * 2.2), up = higher ?? 0, pace = atOnce ? 1 : FADE;
      const aim = higher === null || bubbles.some((bubble) => covered({ x, y, wide, high }, bubble) > 0) ? 0 : 1;
      name.seen += (aim - name.seen) * pace;
      const before = name.up;
      name.up += (up - name.up) * pace;
      if (Math.abs(aim - name.seen) > 0.02 || Math.abs(up - before) > 0.5) fading = true;
      if (name.seen < 0.03) continue;
      [context.globalAlpha, context.font, context.lineWidth] = [name.seen, font(name.size, colours.font), name.size * 0.28];
      name.lines.forEach((line, i) => {
        context.strokeText(line, x + wide / 2, y + name.size + i * name.size * 1.2);
        context.fillText(line, x + wide / 2, y + name.size + i * name.size * 1.2);
      });
    }
    context.globalAlpha = 1;
    return fading;
  }
}

/**
 * Return by how many pixels a name must move up so that residents do not cover it; null if that is too far.
 * @param {Rect} rect
 * @param {Rect[]} dots
 * @param {number} most
 */
function raised(rect, dots, most) {
  let up = 0;
  for (const dot of dots) {
    const higher = { ...rect, y: rect.y - up };
    if (covered(higher, dot) > 0) up += higher.y + rect.high - dot.y;
  }
  return up <= most ? up : null;
}

/**
 * @param {number} size
 * @param {string} family
 */
const font = (size, family) => `600 ${size}px ${family}`;
