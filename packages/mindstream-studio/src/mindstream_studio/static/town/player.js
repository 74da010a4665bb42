// A town that is looked at: what is chosen, the clock that runs, the slider, the keys.

import { make } from "./elements.js";
import { firstMorning, nextHappening, partsOf, readParts } from "./links.js";
import { feedView } from "./panels/feed.js";
import { peopleView } from "./panels/people.js";
import { placesView, placeView } from "./panels/places.js";
import { residentView } from "./panels/resident.js";
import { tabbed } from "./panels/tabs.js";
import { Stage } from "./stage.js";
import { Timeline } from "./timeline.js";
import { dayOf, shortDayOf, timeOf } from "./times.js";
import { SPEEDS, Transport } from "./transport.js";

/** @import { Target } from "./links.js" */
/** @import { Tabs } from "./panels/tabs.js" */
/** @import { Person, Recording, View } from "./types.js" */

/** @typedef {{t: number, playing: boolean, speed: number, who: number | null, place: number, own: boolean, follow: boolean, tab: string, list: string}} State */

/**
 * @typedef {object} Options  what the page around it adds
 * @property {(target: Target) => string} [href]  the address of a target
 * @property {(player: Player, resting: boolean) => void} [told]  after something changed; `resting`: nothing plays
 * @property {(atOnce: boolean) => void} [drawn]  a frame was drawn
 * @property {(text: string) => void} [notify]
 * @property {(kind: "resident" | "place", number: number, player: Player) => View | null} [extra]
 * @property {(person: Person, player: Player) => Tabs} [tabs]  more parts of a resident
 * @property {(player: Player) => Tabs} [lists]  more lists of the town
 * @property {(person: Person, step: number) => HTMLElement | null} [why]
 * @property {() => void} [theme]
 * @property {(event: KeyboardEvent) => boolean} [keys]  takes a key before the player does
 */

const SPARING_MS = 120; // minimum milliseconds between two updates of the texts while playing
const ELSEWHERE = "input:not([type=range]), select, textarea, dialog, [role=dialog], nav, .aside"; // elements that handle keys themselves
const NARROW = matchMedia("(max-width: 760px)");

export class Player {
  /**
   * @param {Recording} town
   * @param {Options} options
   */
  constructor(town, options = {}) {
    this.town = town;
    this.options = options;
    /** @type {State} */
    this.state = { t: firstMorning(town), playing: false, speed: 60, who: null, place: 0, own: false, follow: false, tab: "now", list: "feed" };
    this.date = make("span");
    this.time = make("time", { class: "now" });
    this.clock = make("p", { class: "clock", "aria-live": "off" }, this.date, " ", this.time);
    this.panel = make("aside", { class: "panel", "aria-label": "Details" });
    this.stage = new Stage(town, this.state, { choose: (chosen) => this.choose(chosen), unfollow: () => this.follow(false), draw: () => this.request() });
    this.timeline = new Timeline(town, (step) => this.seek(step, false));
    this.transport = new Transport({ play: () => this.play(!this.state.playing), step: (way) => this.toHappening(way), speed: (speed) => this.setSpeed(speed) }, this.timeline.node);
    this.node = make("div", { class: "town" }, this.stage.node, this.panel, this.transport.node);
    this.node.style.setProperty("--tall", (town.size[1] / town.size[0]).toFixed(3));
    /** @type {View} */
    this.view = { node: this.panel, update: () => {} };
    this.shown = -1; // the step that the texts show
    this.told = 0; // time of the last update of the texts
    this.before = 0; // time of the previous frame
    this.frame = 0;
    this.drawing = false;
    this.catching = false; // whether the player moves to the end of a recording that has grown
    this.all = true; // whether everything must be drawn again at once
    this.node.addEventListener("click", (event) => { // a button that was clicked must not receive the space bar
      if (event.detail > 0 && event.target instanceof Element) /** @type {HTMLElement | null} */ (event.target.closest("button, summary"))?.blur();
    });
    this.onkey = (/** @type {KeyboardEvent} */ event) => this.key(event);
    document.addEventListener("keydown", this.onkey);
    this.setSpeed(this.state.speed);
    this.openPanel();
  }

  get step() {
    return Math.floor(this.state.t);
  }

  /** Read the colours of the style sheet; call it when the page is shown and when the theme has changed. */
  restyle() {
    this.stage.restyle();
  }

  /** @param {Target} target */
  hrefOf(target) {
    return this.options.href?.(target) ?? `#${partsOf(this.town, target)}`;
  }

  /**
   * @param {"resident" | "place"} kind
   * @param {number} number
   */
  extra(kind, number) {
    return this.options.extra?.(kind, number, this) ?? null;
  }

  /** @param {Person} person */
  tabsOf(person) {
    return this.options.tabs?.(person, this) ?? {};
  }

  /**
   * @param {Person} person
   * @param {number} step
   */
  whyButton(person, step) {
    return this.options.why?.(person, step) ?? null;
  }

  /** @param {{who?: number | null, place?: number}} chosen */
  choose({ who = null, place = 0 }) {
    Object.assign(this.state, { who, place });
    if (who === null) Object.assign(this.state, { own: false, follow: false });
    this.openPanel();
    this.request(true);
  }

  openPanel() {
    const { state } = this;
    this.view.close?.();
    this.view = state.who !== null ? residentView(this, state.who) : state.place ? placeView(this, state.place) : tabbed({
      feed: ["Happenings", () => feedView(this)], people: ["People", () => peopleView(this)], places: ["Places", () => placesView(this)], ...this.options.lists?.(this),
    }, state.list, (name) => { state.list = name; }, () => this.step);
    this.panel.replaceChildren(this.view.node);
    this.panel.scrollTop = 0;
    this.view.update(this.step);
  }

  /** @param {boolean} value */
  follow(value) {
    this.state.follow = value && this.state.who !== null;
    const button = this.panel.querySelector(".follow");
    if (button) button.ariaPressed = String(this.state.follow);
    if (this.state.follow) this.stage.approach();
    this.request(true);
  }

  /** @param {boolean} own */
  see(own) {
    this.state.own = own && this.state.who !== null;
    this.openPanel();
    this.request(true);
  }

  /**
   * @param {number} t
   * @param {boolean} [all]  whether the texts are updated at once; while the slider is dragged they follow a little later
   */
  seek(t, all = true) {
    this.state.t = Math.max(this.town.first, Math.min(this.town.last, t));
    this.catching = false;
    if (this.state.t >= this.town.last && this.state.playing) this.play(false);
    this.request(all);
  }

  /** @param {boolean} value */
  play(value) {
    if (value && this.state.t >= this.town.last) this.state.t = this.town.first;
    this.state.playing = value;
    this.transport.showPlaying(value);
    this.before = performance.now();
    this.request(!value);
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.state.speed = speed;
    this.transport.showSpeed(speed);
  }

  /** @param {1 | -1} way */
  toHappening(way) {
    const found = nextHappening(this.town, this.step, way, this.state.who);
    if (found) this.seek(found.step);
  }

  /** @param {URLSearchParams} parts */
  open(parts) {
    const found = readParts(this.town, parts);
    if (found.lost.length) this.options.notify?.(`Named by the link, but not in this recording: ${found.lost.join(", ")}.`);
    if (found.t !== null) this.state.t = found.t;
    for (const name of /** @type {const} */ (["tab", "list"])) if (parts.get(name)) this.state[name] = parts.get(name) ?? "";
    this.state.own = found.own;
    this.choose({ who: found.who, place: found.place });
    if (found.who !== null && parts.get("follow") !== null) this.follow(true);
  }

  /** Show that the recording has grown; if its end was shown, move to the new end. @param {number} before  the last step until then */
  renew(before) {
    this.catching = !this.state.playing && (this.catching || this.state.t >= before);
    this.stage.renew();
    this.timeline.renew();
    this.request(true);
  }

  /** Show what another player of the same town has shown, in the same way. @param {Player} before */
  takeOver(before) {
    const { state, town, stage: { camera: { x, y, wide, moved } } } = before, name = town.people[state.who ?? -1]?.name;
    const who = this.town.people.findIndex((person) => person.name === name);
    Object.assign(this.state, state, { t: Math.min(state.t, this.town.last), who: who < 0 ? null : who });
    Object.assign(this.stage.camera, { x, y, wide, moved });
    this.before = performance.now();
    this.transport.showSpeed(state.speed);
    this.transport.showPlaying(state.playing);
    this.catching = !state.playing && (before.catching || state.t >= town.last);
    this.openPanel();
    this.panel.scrollTop = before.panel.scrollTop;
    this.request(true);
  }

  /**
   * Request a frame; `all` draws everything at once, after an action of the user.
   * @param {boolean} [all]
   */
  request(all = false) {
    this.all ||= all;
    if (all && !this.drawing && this.node.isConnected) {
      cancelAnimationFrame(this.frame);
      this.draw(performance.now());
    } else if (!this.frame) this.frame = requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    [this.frame, this.drawing] = [0, true];
    const { state, town } = this, atOnce = this.all;
    if (state.playing) {
      state.t = Math.min(town.last, state.t + ((Math.max(0, Math.min(now - this.before, 500)) / 1000) * state.speed) / town.seconds);
      if (state.t >= town.last) this.play(false);
    } else if (this.catching) this.catchUp(now - this.before);
    this.before = now;
    const moving = this.stage.draw(atOnce);
    this.options.drawn?.(atOnce);
    if (atOnce || (this.step !== this.shown && now - this.told > SPARING_MS)) this.tell(now);
    this.all = this.drawing = false;
    if (state.playing || moving || this.catching || this.step !== this.shown) this.request();
  }

  /** @param {number} passed  milliseconds */
  catchUp(passed) {
    const { state, town } = this, left = town.last - state.t;
    state.t += Math.min(left, Math.max(left * 0.004, 0.006) * Math.max(0, Math.min(passed, 100)));
    this.catching = state.t < town.last;
  }

  /**
   * Update the texts: once per step, and at most every SPARING_MS while playing.
   * @param {number} now
   */
  tell(now) {
    [this.shown, this.told] = [this.step, now];
    this.date.textContent = NARROW.matches ? shortDayOf(this.town, this.step) : dayOf(this.town, this.step);
    this.time.textContent = timeOf(this.town, this.step);
    this.timeline.show(this.step);
    this.stage.describe();
    this.view.update(this.step);
    this.options.told?.(this, !this.state.playing);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = event.target instanceof Element ? event.target : null;
    const typing = target?.closest(ELSEWHERE), pressing = event.key === " " && target?.closest("button, summary, a");
    const act = this.keys(event)[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || (typing && event.key !== "Escape")) return;
    if (this.options.keys?.(event)) return event.preventDefault();
    if (pressing || !act) return;
    event.preventDefault();
    act();
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {Record<string, () => void>}
   */
  keys({ shiftKey }) {
    const { state, town } = this, minute = (shiftKey ? 3600 : 60) / town.seconds, at = SPEEDS.indexOf(state.speed);
    /** @type {(times: number) => void} */
    const zoom = (times) => { this.stage.camera.zoom(times); this.request(); };
    return {
      " ": () => this.play(!state.playing), ArrowRight: () => this.seek(state.t + minute), ArrowLeft: () => this.seek(state.t - minute),
      "[": () => this.toHappening(-1), "]": () => this.toHappening(1), ArrowUp: () => this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, at + 1)] ?? state.speed),
      ArrowDown: () => this.setSpeed(SPEEDS[Math.max(0, at - 1)] ?? state.speed), Escape: () => this.choose({}), f: () => this.follow(!state.follow),
      d: () => this.options.theme?.(), 0: () => { this.stage.camera.showWhole(); this.request(); }, "+": () => zoom(0.7), "-": () => zoom(1 / 0.7),
    };
  }

  close() {
    document.removeEventListener("keydown", this.onkey);
    cancelAnimationFrame(this.frame);
    this.drawing = true; // no further frame is requested
    this.frame = -1;
    this.view.close?.();
    this.stage.close();
    this.timeline.close();
  }
}
