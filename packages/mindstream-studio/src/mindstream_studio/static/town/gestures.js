// Gestures on the map: drag, pinch, wheel, press.

/** @import { Camera } from "./camera.js" */
/** @import { Point } from "./types.js" */

/**
 * @param {HTMLElement} area
 * @param {Camera} camera
 * @param {{moved: (dragged: boolean) => void, pressed: (pixel: Point) => void, over: (pixel: Point | null) => void}} told
 */
export function listen(area, camera, told) {
  /** @type {Map<number, Point>} */
  const fingers = new Map();
  /** @type {Point | null} */
  let before = null;
  let far = 0;
  /** @type {(event: MouseEvent) => Point} */
  const where = (event) => {
    const box = area.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  area.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.zoom(Math.exp(event.deltaY * 0.0015), where(event));
    told.moved(false);
  }, { passive: false });
  area.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Element && event.target.closest("button, a")) return;
    fingers.set(event.pointerId, where(event));
    [before, far] = [where(event), 0];
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    const from = fingers.get(event.pointerId), to = where(event);
    if (!from) return void told.over(to);
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    fingers.set(event.pointerId, to);
    far += Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (other) {
      /** @type {(at: Point) => number} */
      const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]) || 1;
      camera.zoom(apart(from) / apart(to), other);
      told.moved(false);
    } else if (far > 4) {
      camera.pan(to[0] - from[0], to[1] - from[1]);
      told.moved(true);
    }
  });
  area.addEventListener("pointerleave", () => told.over(null));
  /** @type {(event: PointerEvent) => void} */
  const end = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && far <= 4 && before) told.pressed(before);
  };
  area.addEventListener("pointerup", end);
  area.addEventListener("pointercancel", end);
}
