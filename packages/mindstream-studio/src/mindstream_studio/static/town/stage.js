// The map: a canvas, the gestures on it, and for the keyboard and screen readers a button for each resident.

import { at } from "./lists.js";
import { Camera } from "./camera.js";
import { Cast } from "./cast.js";
import { readColours } from "./colours.js";
import { iconButton, make, said } from "./elements.js";
import { listen } from "./gestures.js";
import { overlayAt } from "./overlay.js";
import { Painter } from "./painter.js";
import { placeOn } from "./places.js";
import { Scenery } from "./scenery.js";
import { momentOf } from "./times.js";

/** @import { Part } from "./cast.js" */
/** @import { Overlay } from "./overlay.js" */
/** @import { State } from "./player.js" */
/** @import { Recording } from "./types.js" */

const CALM = matchMedia("(prefers-reduced-motion: reduce)"); // if it matches, residents jump from step to step
const HANDLES = 120; // maximum residents with a keyboard-accessible handle on the map; more are only in the list
const CLOSE = 44; // tiles across while a resident is followed
const SLOW = 100; // maximum speed factor with smooth movement

export class Stage {
  /**
   * @param {Recording} town
   * @param {State} state
   * @param {{choose: (chosen: {who?: number | null, place?: number}) => void, unfollow: () => void, draw: () => void}} told
   */
  constructor(town, state, told) {
    this.town = town;
    this.state = state;
    this.told = told;
    this.camera = new Camera(town.size);
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.mode = make("p", { class: "mode", hidden: true });
    /** @type {HTMLButtonElement[]} */
    this.handles = town.people.length > HANDLES ? [] : town.people.map((person) => this.handle(person.number));
    this.buttons = this.zoomButtons();
    this.node = make("div", { class: "stage", tabindex: "-1" }, this.canvas,
      make("div", { class: "handles", role: "group", "aria-label": "Residents on the map" }, this.handles), this.buttons, this.mode);
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser cannot draw on a canvas");
    this.cast = new Cast(town);
    this.painter = new Painter(town, context, this.camera, new Scenery(town, told.draw));
    /** @type {number | null} */
    this.over = null;
    /** @type {Overlay} */
    this.overlay = { chosen: null, way: null, fog: null, odd: [] };
    this.overlaid = "";
    listen(this.node, this.camera, {
      moved: (dragged) => (dragged ? told.unfollow() : told.draw()),
      pressed: (pixel) => this.press(pixel),
      over: (pixel) => this.point(pixel),
    });
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.node);
  }

  /** @param {number} number */
  handle(number) {
    /** @type {(over: number | null) => void} */
    const point = (over) => { this.over = over; this.told.draw(); };
    return make("button", {
      type: "button", class: "dot", onclick: () => this.told.choose({ who: number }),
      onfocus: () => point(number), onblur: () => point(null),
    }, make("span"));
  }

  zoomButtons() {
    /** @type {(act: () => void) => () => void} */
    const look = (act) => () => { act(); this.told.draw(); };
    return make("div", { class: "zoom", role: "group", "aria-label": "Map" },
      iconButton("closer", "Zoom in", look(() => this.camera.zoom(0.7)), "+"),
      iconButton("farther", "Zoom out", look(() => this.camera.zoom(1 / 0.7)), "−"),
      iconButton("whole", "Show the whole map", look(() => this.camera.showWhole()), "0"));
  }

  /** @param {[number, number]} pixel */
  press(pixel) {
    const who = this.painter.whoIsAt(pixel), place = who === null ? placeOn(this.town, this.camera.toMap(pixel)) : 0;
    this.told.choose(who !== null ? { who } : place > 0 ? { place } : {});
  }

  /** @param {[number, number] | null} pixel */
  point(pixel) {
    const over = pixel && this.painter.whoIsAt(pixel);
    if (over === this.over) return;
    this.over = over;
    this.node.classList.toggle("over", over !== null);
    this.told.draw();
  }

  resize() {
    const box = this.node.getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1);
    this.camera.resize([this.node.clientWidth || box.width, this.node.clientHeight || box.height]);
    Object.assign(this.canvas, { width: Math.round(this.camera.pixels[0] * ratio), height: Math.round(this.camera.pixels[1] * ratio) });
    this.painter.ratio = ratio;
    this.painter.taken = [this.buttons].map((each) => ({ x: each.offsetLeft, y: each.offsetTop, wide: each.offsetWidth, high: each.offsetHeight }));
    this.told.draw();
  }

  /** Read colours and fonts from the style sheet again. */
  restyle() {
    this.painter.restyle(readColours(this.node), Math.max(11, parseFloat(getComputedStyle(this.node).fontSize) - 1 || 12));
    this.told.draw();
  }

  /** Zoom in on the resident that is followed. */
  approach() {
    this.camera.wide = Math.min(this.camera.wide, CLOSE);
    this.camera.moved = true;
  }

  /** Update after the town's data have changed. */
  renew() {
    this.cast.key = this.overlaid = "";
  }

  /**
   * Draw a frame.
   * @param {boolean} atOnce
   * @returns {boolean} whether something still moves
   */
  draw(atOnce) {
    const { town, state } = this, step = Math.floor(state.t), person = state.who === null ? null : at(town.people, state.who);
    const parts = this.cast.at(step, state.own ? person : null), calm = CALM.matches;
    this.overlayNow(step);
    if (state.follow && state.who !== null) this.follow(at(parts, state.who), calm);
    return this.painter.draw({
      t: state.t, rate: state.playing ? state.speed : 0, who: state.who, over: this.over, overlay: this.overlay, parts, calm,
      atOnce: atOnce || calm || !state.playing || state.speed > SLOW,
    });
  }

  /**
   * @param {Part} part
   * @param {boolean} calm
   */
  follow({ from, to }, calm) {
    const share = calm ? 0 : this.state.t - Math.floor(this.state.t);
    if (from && to) this.camera.lookAt([from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share]);
  }

  /** @param {number} step */
  overlayNow(step) {
    const { who, place, own } = this.state, key = [step, who, place, own].join();
    if (key === this.overlaid) return;
    const same = this.overlaid.split(",")[2] === String(place), chosen = this.overlay.chosen;
    this.overlaid = key;
    this.overlay = overlayAt(this.town, step, { who, place: same ? 0 : place, own });
    if (same && place) this.overlay.chosen = chosen;
  }

  /** Announce in words what is shown, for screen readers: a few times per second, not in every frame. */
  describe() {
    const { town, state } = this, person = state.who === null ? null : town.people[state.who];
    this.mode.hidden = !(person && state.own);
    if (person && state.own) this.mode.replaceChildren("As ", said(person.name), " experienced it", make("span", { class: "more-words" }, ": what is out of sight, or was only seen earlier, is pale"));
    this.handles.forEach((handle, number) => {
      const point = this.painter.drawn[number], part = this.cast.parts[number];
      handle.hidden = !point;
      if (!point || !part) return;
      const words = part.how ? `${part.person.name}, last noticed ${momentOf(town, part.seen)}: ${part.doing}` : `${part.person.name}: ${part.doing}`;
      if (handle.ariaLabel !== words) handle.ariaLabel = words;
      handle.style.setProperty("transform", `translate(${point[0].toFixed(0)}px, ${point[1].toFixed(0)}px)`);
    });
  }

  close() {
    this.watch.disconnect();
  }
}
