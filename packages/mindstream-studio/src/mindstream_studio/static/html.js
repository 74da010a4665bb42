/** The template function of components: `html` creates nodes; interpolated text never becomes markup. */
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { Component, Fragment, h, render } from "./vendor/preact.js";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "./vendor/signals.js";

/** @typedef {import("preact").ComponentChildren} Children */
