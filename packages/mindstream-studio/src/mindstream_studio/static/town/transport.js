// Play, pause, the speed, the happening before and after.

import { icon, iconButton, make } from "./elements.js";

export const SPEEDS = [1, 10, 60, 300];

export class Transport {
  /**
   * @param {{play: () => void, step: (way: 1 | -1) => void, speed: (speed: number) => void}} told
   * @param {HTMLElement} timeline
   */
  constructor(told, timeline) {
    this.play = make("button", { type: "button", class: "icon play", "aria-label": "Play", title: "Play or pause (space)", onclick: told.play });
    this.speeds = SPEEDS.map((speed) => make("button", {
      type: "button", value: speed, title: `${speed} times as fast as the town’s clock`, onclick: () => told.speed(speed),
    }, `${speed}×`));
    this.node = make("section", { class: "transport", "aria-label": "Playback" },
      make("div", { class: "buttons" },
        iconButton("earlier", "Previous happening", () => told.step(-1), "["), this.play, iconButton("later", "Next happening", () => told.step(1), "]"),
        make("div", { class: "speeds", role: "group", "aria-label": "Speed" }, this.speeds)),
      timeline);
    this.showPlaying(false);
  }

  /** @param {boolean} playing */
  showPlaying(playing) {
    this.play.replaceChildren(icon(playing ? "pause" : "play"));
    this.play.ariaLabel = playing ? "Pause" : "Play";
  }

  /** @param {number} speed */
  showSpeed(speed) {
    for (const button of this.speeds) button.ariaPressed = String(Number(button.value) === speed);
  }
}
