// Draw a frame: the ground, the night, paths, residents, and what they say and do.

import { between } from "./cast.js";
import { noColours } from "./colours.js";
import { Faces } from "./faces.js";
import { Labels } from "./labels.js";
import { Lettering } from "./lettering.js";
import { lineAt, talkAt, textOf } from "./moment.js";
import { Names } from "./names.js";
import { spread } from "./spread.js";
import { minuteOf } from "./times.js";

/** @import { Part } from "./cast.js" */
/** @import { Camera } from "./camera.js" */
/** @import { Colours } from "./colours.js" */
/** @import { Rect, Wish } from "./labels.js" */
/** @import { Overlay } from "./overlay.js" */
/** @import { Scenery } from "./scenery.js" */
/** @import { Point, Recording } from "./types.js" */

const NEAR = 13; // minimum pixels per tile at which all awake residents have bubbles, if at most 3 * FEW residents are in view
const FEW = 14; // with at most this many residents in view, all awake ones have bubbles at any scale
const READ_S = 0.9; // minimum seconds for a line of a talk; if time runs faster, bubbles show what the speakers do, not their words
const NEIGHBOURS = 180; // pixels within which residents with the same activity share one bubble
const SOFT = 0.28; // share of the remaining way to a new position in a crowd per frame

/**
 * @typedef {object} Shot  what a frame is to show
 * @property {number} t
 * @property {number} rate  seconds of the town per second; 0: paused
 * @property {number | null} who
 * @property {number | null} over  the resident under the pointer or with the keyboard focus
 * @property {Overlay} overlay
 * @property {Part[]} parts
 * @property {boolean} atOnce  without soft movement
 * @property {boolean} calm  residents jump from step to step, without movement between
 */

/** @typedef {{lines: string[], font: string, wide: number, high: number, said: boolean, bold: boolean}} Bubble */

export class Painter {
  /**
   * @param {Recording} town
   * @param {CanvasRenderingContext2D} context
   * @param {Camera} camera
   * @param {Scenery} scenery
   */
  constructor(town, context, camera, scenery) {
    this.town = town;
    this.context = context;
    this.camera = camera;
    this.scenery = scenery;
    this.lettering = new Lettering(context);
    this.names = new Names(town);
    this.faces = new Faces();
    this.labels = new Labels();
    this.colours = noColours();
    this.letters = 12; // pixels
    this.ratio = 1;
    /** @type {(Point | null)[]} where each was drawn, in pixels */
    this.drawn = [];
    /** @type {[number, number][]} how far beside its spot each was drawn */
    this.moved = [];
    this.dot = 20;
    /** @type {Rect[]} the buttons that cover parts of the map */
    this.taken = [];
  }

  /**
   * @param {Colours} colours
   * @param {number} letters
   */
  restyle(colours, letters) {
    this.colours = colours;
    this.letters = letters;
    this.names.scale = 0;
    this.scenery.recolour(colours);
  }

  /** Pixels of a resident's disc: smaller if many residents are seen from afar. */
  size() {
    const [width, height] = this.camera.pixels, crowd = Math.sqrt((width * height) / Math.max(1, this.town.people.length)) * 0.32;
    const least = Math.max(7, Math.min(width < 500 ? 18 : 22, crowd));
    return Math.round(Math.min(34, Math.max(least, this.camera.scale * 1.5)));
  }

  /**
   * @param {Shot} shot
   * @returns {boolean} whether something still moves
   */
  draw(shot) {
    const { context, camera, ratio } = this, [width, height] = camera.pixels;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.colours.meadow;
    context.fillRect(0, 0, width * ratio, height * ratio);
    this.scenery.draw(context, camera, ratio);
    this.drawNight(shot.t);
    this.drawGround(shot.overlay);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.dot = this.size();
    const moving = this.putAll(shot);
    this.names.fit(camera.scale, this.lettering, this.colours.font);
    const names = this.names.rects(camera), bubbles = this.bubbles(shot), dots = this.dots(), placed = this.placeBubbles(shot, bubbles, dots, names);
    const fading = this.names.draw(context, names, [...placed.values()], dots, this.colours, shot.atOnce);
    this.drawTalks(shot);
    this.drawFaces(shot);
    for (const [number, rect] of placed) this.drawBubble(rect, bubbles.get(number));
    return moving || fading;
  }

  /** @param {number} t */
  drawNight(t) {
    const hour = minuteOf(this.town, t) / 60, dark = Math.max(0, Math.min(1, hour < 12 ? (7.5 - hour) / 2 : (hour - 18.5) / 2.5));
    if (!dark) return;
    const { context, camera: { pixels: [width, height] }, ratio } = this;
    [context.fillStyle, context.globalAlpha] = [this.colours.night, dark * 0.36];
    context.fillRect(0, 0, width * ratio, height * ratio);
    context.globalAlpha = 1;
  }

  /** @param {Overlay} overlay */
  drawGround({ chosen, way, fog, odd }) {
    const { context, camera, ratio, colours } = this, scale = camera.scale * ratio;
    context.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
    context.lineCap = context.lineJoin = "round";
    if (fog) {
      [context.fillStyle, context.globalAlpha] = [colours.paper, 0.72];
      context.fill(fog, "evenodd");
      context.globalAlpha = 1;
    }
    context.strokeStyle = colours.accent;
    if (chosen) {
      context.lineWidth = 0.3;
      context.stroke(chosen);
    }
    if (way) {
      context.lineWidth = 0.22;
      context.setLineDash([0.1, 0.55]);
      context.stroke(way);
      context.setLineDash([]);
    }
    [context.fillStyle, context.strokeStyle, context.lineWidth] = [colours.odd, colours.halo, 0.12];
    for (const [x, y] of odd) {
      context.beginPath();
      context.moveTo(x, y - 0.55);
      context.lineTo(x + 0.55, y);
      context.lineTo(x, y + 0.55);
      context.lineTo(x - 0.55, y);
      context.closePath();
      context.fill();
      context.stroke();
    }
  }

  /**
   * Find the position of each disc; discs that would overlap are moved apart.
   * @param {Shot} shot
   */
  putAll({ parts, t, atOnce, calm }) {
    const share = calm ? 0 : t - Math.floor(t), [width, height] = this.camera.pixels, room = this.dot;
    const points = parts.map((part) => {
      const point = between(part, share);
      if (!point) return null;
      const [x, y] = this.camera.toPixels(point);
      return /** @type {Point | null} */ (x > -room && y > -room && x < width + room && y < height + room ? [x, y] : null);
    });
    const aims = spread(points, this.dot + 3);
    let moving = false;
    this.drawn = points.map((point, number) => {
      const aim = aims[number];
      if (!point || !aim) return null;
      const before = this.moved[number] ?? [0, 0], soft = atOnce ? 1 : SOFT;
      /** @type {[number, number]} */
      const moved = [before[0] + (aim[0] - point[0] - before[0]) * soft, before[1] + (aim[1] - point[1] - before[1]) * soft];
      if (Math.hypot(aim[0] - point[0] - moved[0], aim[1] - point[1] - moved[1]) > 0.3) moving = true;
      this.moved[number] = moved;
      return [point[0] + moved[0], point[1] + moved[1]];
    });
    return moving;
  }

  /** @param {Shot} shot */
  drawFaces({ parts, who, over }) {
    const { context, colours, dot, ratio } = this, last = [who, over].filter((each) => each !== null);
    const order = last.length ? [...parts.keys()].filter((each) => !last.includes(each)).concat(last) : parts.keys();
    const shown = [...order].flatMap((number) => {
      const at = this.drawn[number], part = parts[number];
      return at && part ? [{ number, part, x: at[0], y: at[1] }] : [];
    });
    this.faces.draw(context, shown, dot, ratio, colours);
    for (const { number, x, y } of shown) if (number === who || number === over) this.ring([x, y], number === who ? 2.5 : 1.5);
  }

  /**
   * @param {Point} at
   * @param {number} width
   */
  ring([x, y], width) {
    const { context, dot } = this;
    context.beginPath();
    context.arc(x, y, dot / 2 + 1.5 + width / 2, 0, 2 * Math.PI);
    [context.strokeStyle, context.lineWidth] = [this.colours.accent, width];
    context.stroke();
  }

  /**
   * Draw a line between two residents who talk.
   * @param {Shot} shot
   */
  drawTalks({ parts, t }) {
    const { context } = this, step = Math.floor(t);
    [context.strokeStyle, context.lineWidth, context.globalAlpha] = [this.colours.accent, 2, 0.55];
    for (const { person, why, how } of parts) {
      const talk = why === "talk" && !how ? talkAt(person, step) : null, at = this.drawn[person.number], to = talk ? this.drawn[talk[1]] : null;
      if (!talk || !at || !to || talk[1] < person.number) continue;
      context.beginPath();
      context.moveTo(at[0], at[1]);
      context.lineTo(to[0], to[1]);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /**
   * Return the bubble of each resident.
   * @param {Shot} shot
   */
  bubbles({ parts, t, rate, who, over }) {
    /** @type {Map<number, Bubble>} */
    const bubbles = new Map();
    const visible = this.drawn.reduce((count, at) => count + (at ? 1 : 0), 0), near = this.camera.scale >= NEAR && visible <= 3 * FEW;
    for (const part of parts) {
      const number = part.person.number, { talk, line } = this.spoken(part, t, rate), marked = number === who || number === over;
      if (!this.drawn[number]) continue;
      if (line) bubbles.set(number, this.bubble(line, true, marked, marked ? 6 : 4));
      else if (marked) bubbles.set(number, this.bubble(part.doing, false, true, 2));
      else if (!talk && !part.how && !part.asleep && (near || visible <= FEW)) bubbles.set(number, this.bubble(part.doing.split("(")[0] ?? "", false, false, 1));
    }
    return bubbles;
  }

  /**
   * Return whether a resident's talk is shown line by line (there is time to read it), and its current line.
   * @param {Part} part
   * @param {number} t
   * @param {number} rate
   */
  spoken({ person, why, how }, t, rate) {
    const talk = why === "talk" && !how ? talkAt(person, Math.floor(t)) : null;
    if (!talk || !talk[3].length || (rate && (talk[2] * this.town.seconds) / talk[3].length / rate < READ_S)) return { talk: false, line: "" };
    const line = lineAt(talk, t);
    return { talk: true, line: line && line[0] === person.number ? textOf(this.town, line[1]) : "" };
  }

  /**
   * @param {string} text
   * @param {boolean} said
   * @param {boolean} bold
   * @param {number} most
   * @returns {Bubble}
   */
  bubble(text, said, bold, most) {
    const font = `${bold && !said ? 600 : 400} ${this.letters}px ${this.colours.font}`, widest = Math.min(most > 1 ? 230 : 150, this.camera.pixels[0] * 0.6);
    const lines = this.lettering.lines(text, font, widest, most);
    const wide = Math.max(0, ...lines.map((line) => this.lettering.width(line, font)));
    return { lines, font, said, bold, wide: wide + 14, high: lines.length * this.letters * 1.3 + 6 };
  }

  /**
   * @param {Shot} shot
   * @param {Map<number, Bubble>} bubbles
   * @param {Rect[]} dots
   * @param {Rect[]} names
   */
  placeBubbles({ who, over }, bubbles, dots, names) {
    /** @type {Wish[]} */
    const wishes = [];
    /** @type {Map<string, Point[]>} */
    const told = new Map();
    for (const [number, { wide, high, said, lines }] of bubbles) {
      const at = this.drawn[number], forced = number === who || number === over;
      if (!at || !lines.length || (!forced && !said && isTold(told, lines.join(), at))) continue;
      wishes.push({ number, x: at[0], y: at[1], wide, high, forced: forced || said, weight: (number === who ? 4 : 0) + (number === over ? 3 : 0) + (said ? 2 : 0) });
    }
    return this.labels.place(wishes, dots, [...names, ...this.taken, ...this.taken, ...this.taken], this.camera.pixels, this.dot / 2);
  }

  /** The rectangles of the residents' discs. */
  dots() {
    const half = this.dot / 2;
    return this.drawn.filter((at) => at !== null).map(([x, y]) => ({ x: x - half, y: y - half, wide: this.dot, high: this.dot }));
  }

  /**
   * @param {Rect} rect
   * @param {Bubble | undefined} bubble
   */
  drawBubble({ x, y, wide, high }, bubble) {
    if (!bubble) return;
    const { context, colours, letters } = this;
    context.beginPath();
    context.roundRect(x, y, wide, high, Math.min(9, high / 2));
    [context.fillStyle, context.globalAlpha] = [colours.paper, bubble.said || bubble.bold ? 1 : 0.88];
    context.fill();
    context.globalAlpha = 1;
    [context.strokeStyle, context.lineWidth] = [bubble.said ? colours.accent : colours.line, 1];
    context.stroke();
    [context.fillStyle, context.textAlign, context.textBaseline, context.font] = [colours.ink, "left", "alphabetic", bubble.font];
    bubble.lines.forEach((line, i) => context.fillText(line, x + 7, y + 3 + letters * (1.02 + 1.3 * i)));
  }

  /**
   * Return the resident at a pixel; if several overlap, the one whose centre is nearest.
   * @param {Point} pixel
   */
  whoIsAt([x, y]) {
    let [found, least] = [/** @type {number | null} */ (null), Math.max(12, this.dot / 2 + 3)];
    this.drawn.forEach((at, number) => {
      const far = at ? Math.hypot(at[0] - x, at[1] - y) : Infinity;
      if (far < least) [found, least] = [number, far];
    });
    return found;
  }
}

/**
 * Whether a resident nearby has a bubble with the same words already.
 * @param {Map<string, Point[]>} told
 * @param {string} words
 * @param {Point} at
 */
function isTold(told, words, at) {
  const there = told.get(words) ?? [];
  if (there.some(([x, y]) => Math.hypot(x - at[0], y - at[1]) < NEIGHBOURS)) return true;
  told.set(words, [...there, at]);
  return false;
}
