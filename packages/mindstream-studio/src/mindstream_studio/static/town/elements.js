// Create elements of the page. Text becomes text nodes, so that text of residents is never markup.

import { ICONS } from "./icons.js";

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

/**
 * Make an element; `hue` sets its colour, and attributes such as `onclick` add event listeners.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "hue") element.style.setProperty("--hue", String(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

/**
 * A text written by a resident or user, with its own text direction, which does not affect the text around it.
 * @param {string} text
 * @param {string} [className]
 */
export const said = (text, className) => make("bdi", className ? { class: className } : {}, text);

/**
 * An icon.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", `icon ${name}`);
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * A button with an icon.
 * @param {keyof typeof ICONS} name
 * @param {string} label
 * @param {() => void} onclick
 * @param {string} [key]  the key that does the same
 */
export const iconButton = (name, label, onclick, key) => (
  make("button", { type: "button", class: "icon", "aria-label": label, title: key ? `${label} (${key})` : label, onclick }, icon(name))
);
