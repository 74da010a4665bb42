// Residents' discs with initials: drawn once on shared sheets, then only copied.

import { at } from "./lists.js";
import { faceOf } from "./colours.js";

/** @import { Part } from "./cast.js" */
/** @import { Colours } from "./colours.js" */

const MARGIN = 3; // pixels around a disc
const LEGIBLE = 13; // minimum pixels of a disc with initials
const SHEET = 1024; // device pixels per side of a sheet; shared sheets are faster than one canvas per resident

export class Faces {
  constructor() {
    /** @type {CanvasRenderingContext2D[]} */
    this.sheets = [];
    /** @type {Map<string, number>} the place of each on the sheets */
    this.places = new Map();
    this.key = "";
    this.side = 1; // device pixels of a face's cell on a sheet
    this.across = 1; // cells in a row of a sheet
  }

  /**
   * Copy faces to their positions. New faces are drawn first, all together, because a browser copies a whole sheet again after each change.
   * @param {CanvasRenderingContext2D} context
   * @param {{part: Part, x: number, y: number}[]} shown
   * @param {number} size
   * @param {number} ratio
   * @param {Colours} colours
   */
  draw(context, shown, size, ratio, colours) {
    const key = `${size} ${ratio} ${colours.rim} ${colours.paper}`, side = size + 2 * MARGIN;
    if (key !== this.key) Object.assign(this, { key, sheets: [], places: new Map(), side: Math.ceil(side * ratio), across: Math.floor(SHEET / Math.ceil(side * ratio)) });
    const places = shown.map(({ part }) => this.placeOf(part, size, ratio, colours));
    shown.forEach(({ x, y }, i) => {
      const { sheet, left, top } = this.find(at(places, i));
      context.drawImage(at(this.sheets, sheet).canvas, left, top, this.side, this.side, x - side / 2, y - side / 2, this.side / ratio, this.side / ratio);
    });
  }

  /**
   * @param {Part} part
   * @param {number} size
   * @param {number} ratio
   * @param {Colours} colours
   */
  placeOf(part, size, ratio, colours) {
    const key = `${part.person.number} ${part.asleep ? "z" : ""}${part.how}`;
    let place = this.places.get(key);
    if (place === undefined) {
      this.places.set(key, place = this.places.size);
      const { sheet, left, top } = this.find(place), context = this.sheets[sheet] ??= newSheet();
      context.setTransform(ratio, 0, 0, ratio, left, top);
      drawFace(context, part, size, ratio, colours);
    }
    return place;
  }

  /** @param {number} place */
  find(place) {
    const { across, side } = this, sheet = Math.floor(place / (across * across)), there = place % (across * across);
    return { sheet, left: (there % across) * side, top: Math.floor(there / across) * side };
  }
}

function newSheet() {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SHEET;
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser cannot draw on a canvas");
  return context;
}

/**
 * @param {CanvasRenderingContext2D} context  its origin is the corner of the face's place
 * @param {Part} part
 * @param {number} size
 * @param {number} ratio
 * @param {Colours} colours
 */
function drawFace(context, { person, asleep, how }, size, ratio, colours) {
  const middle = size / 2 + MARGIN;
  context.globalAlpha = how ? 0.5 : 1;
  context.beginPath();
  context.arc(middle, middle, size / 2, 0, 2 * Math.PI);
  context.fillStyle = faceOf(colours, person.hue, asleep);
  [context.shadowColor, context.shadowBlur, context.shadowOffsetY] = ["rgb(0 0 0 / .3)", 3 * ratio, ratio];
  context.fill();
  context.shadowColor = "transparent";
  [context.strokeStyle, context.lineWidth] = [colours.rim, size < LEGIBLE ? 1 : 1.5];
  context.setLineDash(how ? [3, 3] : []);
  context.stroke();
  if (size < LEGIBLE) return;
  [context.fillStyle, context.textAlign, context.textBaseline] = [colours["face-ink"], "center", "middle"];
  context.font = `650 ${size * 0.42}px ${colours.font}`;
  context.fillText(person.initials, middle, middle + size * 0.03, size * 0.9);
}
