// The camera: the part of the map that is shown, in tiles.

/** @import { Point } from "./types.js" */

const NEAREST = 14; // minimum number of tiles that are shown across

export class Camera {
  /** @param {[number, number]} size  of the map, in tiles */
  constructor(size) {
    this.size = size;
    /** @type {[number, number]} */
    this.pixels = [1, 1];
    this.x = 0;
    this.y = 0;
    this.wide = size[0];
    this.moved = false; // whether the user has moved the camera; then it stays there when the window changes its size
  }

  /** Pixels per tile. */
  get scale() {
    return this.pixels[0] / this.wide;
  }

  get high() {
    return (this.wide * this.pixels[1]) / this.pixels[0];
  }

  /**
   * @param {Point} point
   * @returns {Point} in pixels
   */
  toPixels([x, y]) {
    return [(x - this.x) * this.scale, (y - this.y) * this.scale];
  }

  /**
   * @param {Point} pixel
   * @returns {Point} on the map
   */
  toMap([x, y]) {
    return [this.x + x / this.scale, this.y + y / this.scale];
  }

  /**
   * Show a part of the map; the camera cannot zoom out beyond the map.
   * @param {number} x
   * @param {number} y
   * @param {number} wide
   */
  look(x, y, wide) {
    const [width, height] = this.pixels, [mapWide, mapHigh] = this.size;
    const widest = Math.max(mapWide, (mapHigh * width) / height) * 1.02;
    this.wide = Math.min(widest, Math.max(NEAREST, wide));
    /** @type {(start: number, length: number, all: number) => number} */
    const within = (start, length, all) => (length >= all ? (all - length) / 2 : Math.min(all - length, Math.max(0, start)));
    this.x = within(x, this.wide, mapWide);
    this.y = within(y, this.high, mapHigh);
  }

  showWhole() {
    this.moved = false;
    this.look(0, 0, Infinity);
  }

  /** @param {[number, number]} pixels */
  resize(pixels) {
    this.pixels = [Math.max(1, pixels[0]), Math.max(1, pixels[1])];
    if (this.moved) this.look(this.x, this.y, this.wide);
    else this.showWhole();
  }

  /**
   * @param {number} times  factor of the shown width; below 1: closer
   * @param {Point} [around]  the pixel that stays where it is
   */
  zoom(times, around = [this.pixels[0] / 2, this.pixels[1] / 2]) {
    const [x, y] = this.toMap(around), to = Math.max(NEAREST, this.wide * times);
    this.moved = true;
    this.look(x - (around[0] / this.pixels[0]) * to, y - (around[1] / this.pixels[0]) * to, to);
  }

  /**
   * @param {number} dx  in pixels
   * @param {number} dy
   */
  pan(dx, dy) {
    this.moved = true;
    this.look(this.x - dx / this.scale, this.y - dy / this.scale, this.wide);
  }

  /**
   * @param {Point} middle
   * @param {number} [wide]
   */
  lookAt([x, y], wide = this.wide) {
    this.moved = true;
    this.look(x - wide / 2, y - (wide * this.pixels[1]) / this.pixels[0] / 2, wide);
  }
}
