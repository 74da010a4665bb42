// Tabs: several views of which one is shown.

import { make } from "../elements.js";

/** @import { View } from "../types.js" */

/** @typedef {Record<string, [string, () => View]>} Tabs  a name, its label, and what makes it */

/**
 * @param {Tabs} tabs
 * @param {string} first
 * @param {(name: string) => void} remember
 * @param {() => number} now
 * @returns {View}
 */
export function tabbed(tabs, first, remember, now) {
  const body = make("div", { class: "body", role: "tabpanel", tabindex: "0" });
  const names = Object.keys(tabs);
  const buttons = new Map(names.map((name) => [name, make("button", { type: "button", role: "tab", onclick: () => open(name) }, tabs[name]?.[0])]));
  /** @type {View} */
  let view = { node: body, update: () => {} };
  /** @type {(name: string) => void} */
  const open = (name) => {
    view.close?.();
    remember(name);
    for (const [each, button] of buttons) [button.ariaSelected, button.tabIndex] = [String(each === name), each === name ? 0 : -1];
    const [label, build] = tabs[name] ?? ["", () => ({ node: body, update: () => {} })];
    body.ariaLabel = label;
    view = build();
    body.replaceChildren(view.node);
    view.update(now());
  };
  const bar = make("div", {
    class: "tabs", role: "tablist",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.stopPropagation();
      event.preventDefault();
      const at = names.findIndex((name) => buttons.get(name) === document.activeElement);
      const next = names[(at + move + names.length) % names.length] ?? "";
      open(next);
      buttons.get(next)?.focus();
    },
  }, [...buttons.values()]);
  open(tabs[first] ? first : names[0] ?? "");
  return { node: make("div", { class: "tabbed" }, bar, body), update: (step) => view.update(step), close: () => view.close?.() };
}
