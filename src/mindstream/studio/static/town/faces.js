// A resident's disc with initials: drawn once, then only copied.

import { faceOf } from "./colours.js";

/** @import { Part } from "./cast.js" */
/** @import { Colours } from "./colours.js" */

const MARGIN = 3; // pixels around a disc
const LEGIBLE = 13; // pixels of a disc from which on there are initials

export class Faces {
  constructor() {
    /** @type {Map<string, HTMLCanvasElement>} */
    this.drawn = new Map();
    this.key = "";
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Part} part
   * @param {number} x
   * @param {number} y
   * @param {number} size
   * @param {number} ratio
   * @param {Colours} colours
   */
  draw(context, part, x, y, size, ratio, colours) {
    const all = `${size} ${ratio} ${colours.rim} ${colours.paper}`;
    if (all !== this.key) [this.key, this.drawn] = [all, new Map()];
    const key = `${part.person.number} ${part.asleep ? "z" : ""}${part.how}`;
    let face = this.drawn.get(key);
    if (!face) this.drawn.set(key, face = drawFace(part, size, ratio, colours));
    const side = size + 2 * MARGIN;
    context.drawImage(face, x - side / 2, y - side / 2, side, side);
  }
}

/**
 * @param {Part} part
 * @param {number} size
 * @param {number} ratio
 * @param {Colours} colours
 */
function drawFace({ person, asleep, how }, size, ratio, colours) {
  const canvas = document.createElement("canvas"), side = size + 2 * MARGIN;
  canvas.width = canvas.height = Math.ceil(side * ratio);
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.scale(ratio, ratio);
  context.globalAlpha = how ? 0.5 : 1;
  context.beginPath();
  context.arc(side / 2, side / 2, size / 2, 0, 2 * Math.PI);
  context.fillStyle = faceOf(colours, person.hue, asleep);
  [context.shadowColor, context.shadowBlur, context.shadowOffsetY] = ["rgb(0 0 0 / .3)", 3 * ratio, ratio];
  context.fill();
  context.shadowColor = "transparent";
  [context.strokeStyle, context.lineWidth] = [colours.rim, size < LEGIBLE ? 1 : 1.5];
  if (how) context.setLineDash([3, 3]);
  context.stroke();
  if (size < LEGIBLE) return canvas;
  [context.fillStyle, context.textAlign, context.textBaseline] = [colours["face-ink"], "center", "middle"];
  context.font = `650 ${size * 0.42}px ${colours.font}`;
  context.fillText(person.initials, side / 2, side / 2 + size * 0.03, size * 0.9);
  return canvas;
}
