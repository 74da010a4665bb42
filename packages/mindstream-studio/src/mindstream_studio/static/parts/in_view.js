/** What is opened beside a list is seen: its head is brought into view when it opens, and again when it is filled. */
import { useLayoutEffect, useRef } from "../html.js";

/** @param {boolean} filled what is shown has come @returns a ref for what is opened, whose first child is its head */
export function useInView(filled) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => { place.current?.focus({ preventScroll: true }); }, []);
  useLayoutEffect(() => { place.current?.firstElementChild?.scrollIntoView({ block: "nearest" }); }, [filled]);
  return place;
}
