/** The moment that is shown: the newest row of the log, or any other. Arrow keys move it; a link holds it. */
import { html, useId } from "../html.js";
import { change, seq } from "../state.js";
import { Icon } from "./icons.js";

/** @param {{most: number, least?: number, label?: (seq: number) => string}} props `most`: the newest row */
export function TimeSlider({ most, least = 1, label = (at) => `row ${at}` }) {
  const id = useId();
  const at = seq.value === "newest" ? most : Math.min(seq.value, most);
  /** @param {any} event */
  const move = (event) => {
    const to = Number(event.target.value);
    change({ seq: to >= most ? "" : to }, { quietly: true });
  };
  if (most <= least) return null;
  return html`
    <div class="slider">
      <label for=${id} class="hidden-words">The moment that is shown</label>
      <input id=${id} type="range" min=${least} max=${most} value=${at} onInput=${move} aria-valuetext=${label(at)} />
      <output for=${id}>${seq.value === "newest" ? "the newest" : label(at)}</output>
      <button class="quiet icon" disabled=${seq.value === "newest"} onClick=${() => change({ seq: "" })} aria-label="To the newest" title="To the newest"><${Icon} name="newest" /></button>
    </div>`;
}
