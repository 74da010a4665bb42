// The ground as pictures: drawn once for a scale in square pieces, then only copied. While a piece is missing, a coarse picture of the
// whole map stands in its place.

import { noColours } from "./colours.js";
import { at } from "./lists.js";
import { Region } from "./region.js";

/** @import { Camera } from "./camera.js" */
/** @import { ColourName, Colours } from "./colours.js" */
/** @import { Recording } from "./types.js" */

const PIECE = 512; // pixels of a tile image's side
const MOST = 64; // maximum cached images
const BUDGET_MS = 6; // maximum milliseconds per frame for drawing images, except in the first frame
const COARSE = 900; // pixels of the longer side of the coarse image of the whole map
const REST_MS = 140; // milliseconds without zooming until images are drawn for the current scale

/**
 * Style of each kind of ground: fill, stroke, line width in tiles; `[dx, dy]`: offset.
 * @type {Record<string, {fill?: ColourName, stroke?: ColourName, width?: number, dx?: number, dy?: number, even?: boolean}>}
 */
const KINDS = {
  shade: { stroke: "shade", width: 1.5, dx: 0.12, dy: 0.16 }, trees: { stroke: "tree", width: 1.2 }, ways: { fill: "ways", stroke: "ways", width: 0.6 },
  hedges: { stroke: "tree", width: 0.5 }, green: { fill: "green", stroke: "green", width: 0.5 }, paved: { fill: "paved", stroke: "paved", width: 0.5 },
  walls: { fill: "walls", even: true }, roads: { stroke: "ways", width: 1.1 }, site: { fill: "hall", stroke: "walls", width: 0.2 },
};

export class Scenery {
  /**
   * @param {Recording} town
   * @param {() => void} more  asks for another frame
   */
  constructor(town, more) {
    this.size = town.size;
    this.more = more;
    this.grounds = town.map.grounds.map(([kind, path]) => ({ kind, region: new Region(path) }));
    this.things = town.map.things.map(([, stuff, outline, shape, middles]) => ({ stuff, shape, middles, region: new Region(outline) }));
    this.shapes = town.map.shapes.map((shape) => new Path2D(shape));
    /** @type {Map<string, HTMLCanvasElement>} */
    this.pieces = new Map();
    /** @type {HTMLCanvasElement | null} */
    this.coarse = null;
    this.colours = noColours();
    this.scale = 0; // device pixels per tile in the cached images
    this.wanted = 0;
    this.since = 0;
  }

  /** @param {Colours} colours */
  recolour(colours) {
    this.colours = colours;
    this.pieces.clear();
    this.coarse = null;
  }

  /**
   * Draw the part of the map that the camera shows.
   * @param {CanvasRenderingContext2D} context  in device pixels
   * @param {Camera} camera
   * @param {number} ratio  device pixels per CSS pixel
   */
  draw(context, camera, ratio) {
    const now = performance.now(), wanted = camera.scale * ratio;
    if (Math.abs(wanted - this.wanted) > 1e-6) [this.wanted, this.since] = [wanted, now];
    if (!this.scale || (this.scale !== wanted && now - this.since > REST_MS)) {
      this.scale = wanted;
      this.pieces.clear();
    } else if (this.scale !== wanted) setTimeout(this.more, REST_MS);
    const shown = { x: camera.x, y: camera.y, wide: camera.wide, high: camera.high };
    this.drawPieces(context, shown, wanted, now);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{x: number, y: number, wide: number, high: number}} shown
   * @param {number} wanted
   * @param {number} began
   */
  drawPieces(context, { x, y, wide, high }, wanted, began) {
    const side = PIECE / this.scale;
    const left = Math.max(0, Math.floor(x / side)), top = Math.max(0, Math.floor(y / side));
    const right = Math.min(x + wide, this.size[0]), bottom = Math.min(y + high, this.size[1]);
    const missing = [], there = [];
    for (let i = left; i * side < right; i++) {
      for (let j = top; j * side < bottom; j++) {
        const key = `${i} ${j}`, piece = this.pieces.get(key) ?? (performance.now() - began < BUDGET_MS ? this.drawPiece(key, i * side, j * side) : null);
        if (piece) there.push({ piece, i, j });
        else missing.push(key);
      }
    }
    if (missing.length) {
      const coarse = this.coarse ??= this.drawCoarse();
      context.drawImage(coarse, -x * wanted, -y * wanted, this.size[0] * wanted, this.size[1] * wanted);
      this.more();
    }
    const whole = this.scale === wanted, edge = side * wanted;
    for (const { piece, i, j } of there) {
      const toX = (i * side - x) * wanted, toY = (j * side - y) * wanted;
      if (whole) context.drawImage(piece, Math.round(toX), Math.round(toY));
      else context.drawImage(piece, toX, toY, edge + 0.5, edge + 0.5);
    }
  }

  /**
   * @param {string} key
   * @param {number} x
   * @param {number} y
   */
  drawPiece(key, x, y) {
    if (this.pieces.size >= MOST) this.pieces.delete(this.pieces.keys().next().value ?? "");
    const piece = this.drawPart(x, y, PIECE, PIECE, this.scale);
    this.pieces.set(key, piece);
    return piece;
  }

  drawCoarse() {
    const scale = Math.min(8, COARSE / Math.max(...this.size));
    return this.drawPart(0, 0, Math.ceil(this.size[0] * scale), Math.ceil(this.size[1] * scale), scale);
  }

  /**
   * Draw a part of the map at a scale.
   * @param {number} x
   * @param {number} y
   * @param {number} width  in device pixels
   * @param {number} height
   * @param {number} scale
   */
  drawPart(x, y, width, height, scale) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return canvas;
    const box = { left: x - 1, top: y - 1, right: x + width / scale + 1, bottom: y + height / scale + 1 };
    context.fillStyle = this.colours.meadow;
    context.fillRect(0, 0, width, height);
    context.setTransform(scale, 0, 0, scale, -x * scale, -y * scale);
    context.lineCap = context.lineJoin = "round";
    for (const { kind, region } of this.grounds) paintGround(context, kind, region.within(box), this.colours);
    for (const thing of this.things) if (thing.region.touches(box)) this.paintThing(context, thing, scale);
    return canvas;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{stuff: string, shape: number, middles: number[], region: Region}} thing
   * @param {number} scale
   */
  paintThing(context, { stuff, shape, middles, region }, scale) {
    const path = region.whole();
    context.fillStyle = this.colours[/** @type {ColourName} */ (stuff)];
    context.fill(path);
    if (stuff === "water") [context.strokeStyle, context.lineWidth] = [this.colours.water, 0.5];
    else [context.strokeStyle, context.lineWidth] = [this.colours.walls, 0.06];
    if (stuff !== "plant") context.stroke(path);
    if (scale < 5) return;
    [context.strokeStyle, context.lineWidth, context.globalAlpha] = [this.colours.name, 0.08, 0.6];
    const sign = at(this.shapes, shape);
    for (let i = 0; i < middles.length; i += 2) {
      context.translate(at(middles, i), at(middles, i + 1));
      context.stroke(sign);
      context.translate(-at(middles, i), -at(middles, i + 1));
    }
    context.globalAlpha = 1;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} kind
 * @param {Path2D} path
 * @param {Colours} colours
 */
function paintGround(context, kind, path, colours) {
  const { fill, stroke, width = 0, dx = 0, dy = 0, even = false } = KINDS[kind] ?? { fill: /** @type {ColourName} */ (kind) };
  context.translate(dx, dy);
  if (fill) {
    context.fillStyle = colours[fill] ?? colours.hall;
    context.fill(path, even ? "evenodd" : "nonzero");
  }
  if (stroke) {
    [context.strokeStyle, context.lineWidth] = [colours[stroke], width];
    context.stroke(path);
  }
  context.translate(-dx, -dy);
}
