// The style sheet's colours in the form that a canvas needs.

const MAP = /** @type {const} */ (["meadow", "ways", "walls", "tree", "shade", "green", "paved", "tiled", "kitchen", "sleep", "shop", "treat", "learn", "hall",
  "wood", "cloth", "steel", "plant", "water", "felt", "name", "halo", "night", "odd", "rim", "face-ink"]);
const PAGE = /** @type {const} */ (["paper", "ink", "line", "accent"]);

/** @typedef {(typeof PAGE)[number] | (typeof MAP)[number] | "font" | "face" | "asleep"} ColourName */
/** @typedef {Record<ColourName, string>} Colours */

/**
 * Read the current colours of the theme, by the names of their CSS variables (without `--` and `--map-`).
 * @param {HTMLElement} within
 * @returns {Colours}
 */
export function readColours(within) {
  const probe = document.createElement("i");
  probe.hidden = true;
  within.append(probe);
  const found = noColours();
  /** @type {(name: ColourName, token: string) => void} */
  const read = (name, token) => {
    probe.style.setProperty("color", `var(${token})`);
    found[name] = getComputedStyle(probe).color;
  };
  for (const name of PAGE) read(name, `--${name}`);
  for (const name of MAP) read(name, `--map-${name}`);
  const style = getComputedStyle(within);
  found.font = style.fontFamily;
  found.face = style.getPropertyValue("--map-face");
  found.asleep = style.getPropertyValue("--map-face-asleep");
  probe.remove();
  return found;
}

/** Colours before the style sheet is read. */
export const noColours = () => /** @type {Colours} */ ({});

/**
 * The colour of a resident.
 * @param {Colours} colours
 * @param {number} hue
 * @param {boolean} asleep
 */
export const faceOf = (colours, hue, asleep) => `oklch(${asleep ? colours.asleep : colours.face} ${hue})`;
