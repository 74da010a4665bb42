/** Line charts with uPlot, which is loaded for the first chart; the numbers are also given in words for screen readers. */
import { html, useEffect, useRef } from "../html.js";
import { styled } from "../pages.js";
import { theme } from "../state.js";

/** The style sheet of charts, loaded once. @type {Promise<unknown> | undefined} */
let looks;

/**
 * @typedef {{label: string, values: (number | null)[], token?: string, dashed?: boolean, points?: boolean}} Curve `token`: name of a CSS colour variable
 * @typedef {{title: string, xs: number[], curves: Curve[], times?: boolean, from?: number, to?: number,
 *   sayX?: (x: number) => string, sayY?: (y: number) => string, words: string}} ChartProps  `words`: the content of the chart as a sentence
 */

/** Return the current value of a CSS colour variable. @param {HTMLElement} place @param {string} token */
export function colourOf(place, token) {
  const before = place.style.color;
  place.style.color = `var(${token})`;
  const found = getComputedStyle(place).color;
  place.style.color = before;
  return found;
}

/** @param {HTMLElement} place @param {ChartProps} props @returns {any} */
function optionsOf(place, { xs, curves, times = false, from, to, sayX, sayY }) {
  const soft = colourOf(place, "--soft");
  const line = colourOf(place, "--line");
  const font = `12px ${getComputedStyle(place).fontFamily}`;
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  /** @param {((value: number) => string) | undefined} say */
  const values = (say) => (say ? { values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(say) } : {});
  return {
    width: place.clientWidth, height: place.clientHeight, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: times }, y: from === undefined ? {} : { range: [from, to ?? 1] } },
    axes: [{ ...axis, grid: { show: false }, ...values(sayX) }, { ...axis, size: 48, ...values(sayY) }],
    series: [{}, ...curves.map(({ label, token = "--accent", dashed, points }) => ({
      label, stroke: colourOf(place, token), width: 2, ...(dashed ? { dash: [4, 4] } : {}), points: { show: points ?? xs.length < 2 },
    }))],
  };
}

/** @param {ChartProps} props */
export function Chart(props) {
  const { title, xs, curves, words } = props;
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const here = place.current;
    if (!here) return undefined;
    const data = /** @type {any} */ ([xs, ...curves.map(({ values }) => values)]);
    /** @type {any} */
    let plot = null;
    let gone = false;
    const draw = async () => {
      const [{ default: uPlot }] = await Promise.all([import("../vendor/uplot.js"), looks ??= styled("vendor/uplot.css")]);
      if (gone) return;
      plot?.destroy();
      plot = new uPlot(optionsOf(here, props), data, here);
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: here.clientWidth, height: here.clientHeight }));
    resized.observe(here);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => { gone = true; resized.disconnect(); dark.removeEventListener("change", draw); plot?.destroy(); };
  }, [JSON.stringify([xs, curves]), theme.value]);
  return html`
    <figure class="chart">
      <h3>${title}</h3>
      <div class="plot" ref=${place} role="img" aria-label=${`${title}: ${words}`} />
      <figcaption>${words}</figcaption>
    </figure>`;
}
