/** A slider for the moment that is shown: the newest row of the log or an earlier one, stored in the link. */
import { html, useId } from "../html.js";
import { change, seq } from "../state.js";
import { Icon } from "./icons.js";

/**
 * @param {{most: number, least?: number, stops?: number[], label?: (seq: number) => string}} props `most`: the newest row;
 *   `stops`: rows at which the slider stops, in order; without them it stops at each row
 */
export function TimeSlider({ most, least = 1, stops, label = (at) => `row ${at}` }) {
  const id = useId();
  const [first, last] = stops ? [0, stops.length - 1] : [least, most];
  const at = seq.value;
  const place = at === "newest" ? last : stops ? Math.max(0, stops.findLastIndex((each) => each <= at)) : Math.min(at, most);
  const shown = stops ? stops[place] ?? most : place;
  /** @param {any} event */
  const move = (event) => {
    const to = Number(event.target.value);
    change({ seq: to >= last ? "" : stops ? stops[to] ?? "" : to }, { quietly: true });
  };
  if (last <= first) return null;
  return html`
    <div class="slider">
      <label for=${id} class="hidden-words">The moment that is shown</label>
      <input id=${id} type="range" min=${first} max=${last} value=${place} onInput=${move} aria-valuetext=${label(shown)} />
      <output for=${id}>${seq.value === "newest" ? "the newest" : label(shown)}</output>
      <button class="quiet icon" disabled=${seq.value === "newest"} onClick=${() => change({ seq: "" })} aria-label="Go to the newest moment" title="Go to the newest moment"><${Icon} name="newest" /></button>
    </div>`;
}
