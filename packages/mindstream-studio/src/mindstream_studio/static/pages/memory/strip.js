/** A bar chart above the time line: number of memories per day or hour; a bar links to its day. */
import { html } from "../../html.js";
import { counted, dayOf, timeOf } from "../../format.js";

/** @typedef {import("./shapes.js").Memory} Memory */

const [HOUR_S, DAY_S] = [3_600, 86_400];
const MOST = 90;
const HIGH = 40;

/** Count memories in equal time spans from the oldest to the newest. @param {Memory[]} memories */
export function spansOf(memories) {
  const times = memories.map(({ created }) => created);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const whole = last - first;
  const size = whole <= 2 * DAY_S ? HOUR_S : Math.max(DAY_S, Math.ceil(whole / MOST / DAY_S) * DAY_S);
  const start = Math.floor(first / size) * size;
  const counts = new Array(Math.floor((last - start) / size) + 1).fill(0);
  for (const at of times) counts[Math.floor((at - start) / size)] += 1;
  return { start, size, counts };
}

/** @param {{memories: Memory[]}} props */
export function Strip({ memories }) {
  if (memories.length < 5) return null;
  const { start, size, counts } = spansOf(memories);
  if (counts.length < 3) return null;
  const most = Math.max(...counts);
  const say = size < DAY_S ? timeOf : dayOf;
  const wide = 100 / counts.length;
  const end = start + size * (counts.length - 1);
  return html`
    <figure class="strip">
      <svg viewBox="0 0 100 ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${`${counted(memories.length, "memory", "memories")} from ${say(start)} to ${say(end)}`}>
        ${counts.map((many, at) => many > 0 && html`
          <rect x=${at * wide} width=${wide * 0.8} y=${HIGH - (HIGH * many) / most} height=${(HIGH * many) / most} onClick=${() => show(start + at * size)}>
            <title>${say(start + at * size)}: ${counted(many, "memory", "memories")}</title>
          </rect>`)}
      </svg>
      <figcaption class="row small soft"><span>${say(start)}</span><span class="push">${say(end)}</span></figcaption>
    </figure>`;
}

/** @param {number} at */
function show(at) {
  document.getElementById(`day-${dayOf(at)}`)?.scrollIntoView({ block: "start" });
}
