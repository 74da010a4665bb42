/** Scroll a detail view beside a list into view, when it opens and again when its data have arrived. */
import { useLayoutEffect, useRef } from "../html.js";

/** @param {boolean} filled whether the data have arrived @returns a ref for the detail view, whose first child is its head */
export function useInView(filled) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => { place.current?.focus({ preventScroll: true }); }, []);
  useLayoutEffect(() => { place.current?.firstElementChild?.scrollIntoView({ block: "nearest" }); }, [filled]);
  return place;
}
