/** A second town beside the first: its map at the same moment. */
import { make, said } from "../../town/elements.js";
import { extend } from "../../town/growing.js";
import { prepare } from "../../town/recording.js";
import { Stage } from "../../town/stage.js";
import { momentOf } from "../../town/times.js";
import { Feed } from "./feed.js";

/** @typedef {import("../../town/player.js").Player} Player @typedef {import("../../town/types.js").Recording} Recording @typedef {import("../../town/camera.js").Camera} Camera */

/** Move one camera to the part of the map that another shows. @param {Camera} from @param {Camera} to */
function look(from, to) {
  const { x, y, wide, moved } = from;
  if (moved) Object.assign(to, { x, y, wide, moved });
  else if (to.moved) to.showWhole();
}

export class Beside {
  /**
   * @param {string} name
   * @param {Player} player  of the town that leads
   * @param {string} own  that town's name
   * @param {(problem: Error | null) => void} failed
   */
  constructor(name, player, own, failed) {
    this.name = name;
    this.player = player;
    /** @type {Recording | null} */
    this.town = null;
    /** @type {Stage | null} */
    this.stage = null;
    this.state = { ...player.state };
    this.label = make("p", { class: "which" });
    this.mine = make("p", { class: "which" }, said(own));
    player.stage.node.append(this.mine);
    player.options.drawn = (atOnce) => this.draw(atOnce);
    this.feed = new Feed(name, { whole: (recording) => this.begin(recording), part: (recording) => this.grow(recording), failed });
  }

  /** @param {any} recording */
  begin(recording) {
    this.drop();
    this.town = prepare(recording);
    const lead = this.player.stage.camera, stage = this.stage = new Stage(this.town, this.state, {
      choose: (chosen) => this.choose(chosen), unfollow: () => { look(stage.camera, lead); this.player.follow(false); }, draw: () => { look(stage.camera, lead); this.player.request(); },
    });
    look(lead, stage.camera);
    stage.node.append(this.label);
    stage.node.querySelector("[role=group]")?.setAttribute("aria-label", `Residents on the map of ${this.name}`);
    this.player.stage.node.after(stage.node);
    this.player.node.classList.add("pair");
    stage.resize();
    stage.restyle();
    this.player.openPanel();
    this.player.request(true);
  }

  /** @param {any} recording */
  grow(recording) {
    if (!this.town || !this.stage) return;
    extend(this.town, recording);
    this.stage.renew();
    this.player.request(true);
  }

  /** Select the same resident or place on both maps. @param {{who?: number | null, place?: number}} chosen */
  choose({ who = null, place = 0 }) {
    this.player.choose({ who: who === null ? null : this.player.town.people.findIndex(({ name }) => name === this.town?.people[who]?.name), place });
  }

  /** The step to show of the second town: that of the first, or the second's last step if it is earlier. */
  get step() {
    return this.town ? Math.max(this.town.first, Math.min(this.town.last, this.player.step)) : 0;
  }

  /** @param {boolean} atOnce */
  draw(atOnce) {
    const { town, stage, player: { state, town: other, stage: lead } } = this;
    if (!town || !stage) return;
    const name = state.who === null ? "" : other.people[state.who]?.name, who = town.people.findIndex((each) => each.name === name);
    Object.assign(this.state, state, { t: Math.max(town.first, Math.min(town.last, state.t)), who: who < 0 ? null : who });
    look(lead.camera, stage.camera);
    const words = state.t > town.last ? `${this.name}, up to ${momentOf(town, town.last)}` : this.name;
    if (this.label.textContent !== words) this.label.replaceChildren(said(words));
    stage.draw(atOnce);
    stage.describe();
  }

  drop() {
    this.stage?.close();
    this.stage?.node.remove();
    this.player.node.classList.remove("pair");
  }

  close() {
    this.feed.close();
    this.drop();
    this.mine.remove();
    delete this.player.options.drawn;
  }
}
