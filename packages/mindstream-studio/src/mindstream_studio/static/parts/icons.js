/** Icons of 24 by 24 units, drawn as lines in the colour of the text. */
import { html } from "../html.js";

/** @type {Record<string, string>} */
const PATHS = {
  talk: "M4 5h16v11H10l-5 4v-4H4z",
  memory: "M3 9c3-3 6-3 9 0s6 3 9 0M3 16c3-3 6-3 9 0s6 3 9 0",
  town: "M4 20V10l5-4 5 4v10M14 20v-7h6v7M3 20h18M8 20v-4h2v4",
  plan: "M5 5h5v5H5zM14 14h5v5h-5zM10 7.5h4a2.5 2.5 0 0 1 2.5 2.5v4",
  pools: "M12 4c4.5 0 8 1.3 8 3s-3.5 3-8 3-8-1.3-8-3 3.500-3 8-3zM4 7v10c0 1.700 3.500 3 8 3s8-1.300 8-3V7M4 12c0 1.700 3.500 3 8 3s8-1.300 8-3",
  life: "M12 3v4M12 17v4M3 12h4M17 12h4M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8",
  traces: "M4 6h16M4 12h10M4 18h13",
  close: "M6 6l12 12M18 6L6 18",
  why: "M9.500 9.500a2.500 2.500 0 1 1 3.600 2.200c-.800.400-1.100.900-1.100 1.800M12 16.800v.2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l4.500 4.500",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500L19 19M19 5l-1.500 1.500M6.500 17.500L5 19",
  moon: "M19.500 14.500A8 8 0 0 1 9.500 4.500a8 8 0 1 0 10 10z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  back: "M14 6l-6 6 6 6",
  on: "M10 6l6 6-6 6",
  newest: "M6 6l6 6-6 6M18 5v14",
  sleep: "M6 6h6l-6 7h6M14 12h5l-5 6h5",
};

/** @param {{name: string}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name] ?? ""} /></svg>`;
}
