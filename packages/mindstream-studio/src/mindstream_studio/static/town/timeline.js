// The slider over the days; above it, bars for the number of happenings; below it, the hours.

import { make } from "./elements.js";
import { dayOf, minuteOf, shortDayOf, timeOf } from "./times.js";

/** @import { Recording } from "./types.js" */

const BINS = 160;
const APART = 56; // minimum pixels between two labelled hours

export class Timeline {
  /**
   * @param {Recording} town
   * @param {(step: number) => void} seek
   */
  constructor(town, seek) {
    this.town = town;
    this.marks = make("div", { class: "marks", "aria-hidden": "true" });
    this.hours = make("div", { class: "hours", "aria-hidden": "true" });
    this.slider = make("input", { class: "slider", type: "range", step: 1, "aria-label": "Moment of the recording", oninput: () => seek(Number(this.slider.value)) });
    this.node = make("div", { class: "timeline" }, this.marks, this.slider, this.hours);
    this.width = 0;
    this.watch = new ResizeObserver(() => this.hours.clientWidth !== this.width && this.renew());
    this.watch.observe(this.hours);
    this.renew();
  }

  /** Draw the time line again, after the recording or the width has changed. */
  renew() {
    Object.assign(this.slider, { min: String(this.town.first), max: String(this.town.last) });
    this.width = this.hours.clientWidth;
    this.drawMarks();
    this.drawHours();
  }

  drawMarks() {
    const { first, last, feed } = this.town, counts = new Array(BINS).fill(0);
    for (const { step } of feed) if (step >= first && step < last) counts[Math.floor(((step - first) / (last - first)) * BINS)]++;
    const most = Math.max(1, ...counts);
    this.marks.replaceChildren(...counts.flatMap((count, i) => {
      if (!count) return [];
      const mark = make("i");
      Object.assign(mark.style, { left: `${(100 * i) / BINS}%`, width: `${90 / BINS}%`, height: `${20 + (80 * count) / most}%` });
      return [mark];
    }));
  }

  drawHours() {
    const { first, last, seconds } = this.town, hour = 3600 / seconds, hours = (last - first) / hour;
    const every = [1, 2, 3, 6, 12, 24].find((each) => hours / each <= (this.width || 800) / APART) ?? 24;
    const days = Math.max(1, Math.ceil(hours / 24 / ((this.width || 800) / APART)));
    const ticks = [];
    let midnights = 0;
    const offset = (((60 - (minuteOf(this.town, first) % 60)) % 60) * 60) / seconds;
    for (let step = first + offset; step <= last; step += hour) {
      const at = Math.round(minuteOf(this.town, Math.round(step)) / 60) % 24, midnight = at === 0;
      if (hours > 72 && !midnight) continue;
      const worded = midnight ? midnights++ % days === 0 : at % every === 0;
      const tick = make("i", { class: midnight ? "midnight" : at % every === 0 ? "major" : "" });
      tick.style.left = `${(100 * (step - first)) / (last - first)}%`;
      if (worded) tick.append(make("span", {}, midnight ? shortDayOf(this.town, Math.round(step)) : String(at).padStart(2, "0")));
      ticks.push(tick);
    }
    this.hours.replaceChildren(...ticks);
  }

  /** @param {number} step */
  show(step) {
    this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `${dayOf(this.town, step)}, ${timeOf(this.town, step)}`);
  }

  close() {
    this.watch.disconnect();
  }
}
