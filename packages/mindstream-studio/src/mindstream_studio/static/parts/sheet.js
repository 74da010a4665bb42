/** The side sheet beside the page, at most one. Escape closes it and returns the focus to the element that opened it. */
import { html, signal, useLayoutEffect, useRef } from "../html.js";
import { Icon } from "./icons.js";

/** @typedef {{title: string, body: () => any}} SheetContent */

const shown = signal(/** @type {SheetContent | null} */ (null));
/** @type {HTMLElement | null} */
let opener = null;

/** @param {SheetContent} content */
export function openSheet(content) {
  if (!shown.value) opener = /** @type {HTMLElement | null} */ (document.activeElement);
  shown.value = content;
}

export function closeSheet() {
  if (!shown.value) return;
  shown.value = null;
  if (opener?.isConnected) opener.focus();
}

export function Sheet() {
  const content = shown.value;
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => { place.current?.focus(); }, [content]); // immediately, so that Escape works from the start
  if (!content) return null;
  /** @param {KeyboardEvent} event */
  const leave = (event) => { if (event.key === "Escape") { event.stopPropagation(); closeSheet(); } };
  return html`
    <aside class="sheet" ref=${place} role="dialog" aria-labelledby="sheet-title" tabindex="-1" onKeyDown=${leave}>
      <header>
        <h2 id="sheet-title" class="words">${content.title}</h2>
        <button class="quiet icon" onClick=${closeSheet} aria-label="Close"><${Icon} name="close" /></button>
      </header>
      <${content.body} />
    </aside>`;
}
