// The colours of the style sheet, as a canvas wants them.

const NAMES = ["meadow", "ways", "walls", "tree", "shade", "green", "paved", "tiled", "kitchen", "sleep", "shop", "treat", "learn", "hall",
  "wood", "cloth", "steel", "plant", "water", "felt", "name", "halo", "night", "odd", "rim", "face-ink"];
const PAGE = ["paper", "card", "ink", "soft", "line", "edge", "accent", "on-accent"];

/** @typedef {Record<string, string>} Colours */

/**
 * Read the colours as they are now, light or dark; the map's by their own names, the page's by theirs.
 * @param {HTMLElement} within
 * @returns {Colours}
 */
export function readColours(within) {
  const probe = document.createElement("i");
  probe.hidden = true;
  within.append(probe);
  /** @type {Colours} */
  const found = {};
  for (const name of [...PAGE, ...NAMES]) {
    probe.style.setProperty("color", `var(--${NAMES.includes(name) ? "map-" : ""}${name})`);
    found[name] = getComputedStyle(probe).color;
  }
  const style = getComputedStyle(within);
  found.font = style.fontFamily;
  found.face = style.getPropertyValue("--map-face");
  found.asleep = style.getPropertyValue("--map-face-asleep");
  probe.remove();
  return found;
}

/**
 * Somebody's colour.
 * @param {Colours} colours
 * @param {number} hue
 * @param {boolean} asleep
 */
export const faceOf = (colours, hue, asleep) => `oklch(${asleep ? colours.asleep : colours.face} ${hue})`;
