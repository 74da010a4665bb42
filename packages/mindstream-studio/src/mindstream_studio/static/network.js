/**
 * Send requests: every page uses `request`. A token that the server requires is sent in a header, never in a link, and is kept
 * until the tab is closed. A page that was saved to a file contains its answers (`saved/packed.js`).
 */
import { signal } from "./html.js";

const KEPT = "mindstream.token";

/** The names of the pages in a saved file; null: this is the live studio. */
export const held = document.getElementById("app")?.dataset.pages?.split(" ") ?? null;
export const token = signal((!held && window.sessionStorage.getItem(KEPT)) || "");
/** Why the server requires a token; if it is not "", the shell shows the sign-in instead of a page. */
export const wanted = signal(/** @type {"" | "none" | "refused" | "another"} */ (""));

let send = (/** @type {string} */ address, /** @type {RequestInit} */ init) => fetch(address, init);

/** Let a saved file's data answer all requests from now on. @param {typeof send} answer */
export function answerBy(answer) {
  send = answer;
}

/** @param {string} address @param {RequestInit} [init] */
export async function request(address, init = {}) {
  const headers = new Headers(init.headers);
  if (token.value) headers.set("authorization", `Bearer ${token.value}`);
  const answer = await send(address, { ...init, headers });
  if (answer.status === 401) wanted.value = token.value ? "refused" : "none";
  return answer;
}

/** Use a token from now on; "": send none. @param {string} text */
export function useToken(text) {
  token.value = text;
  if (text) window.sessionStorage.setItem(KEPT, text);
  else window.sessionStorage.removeItem(KEPT);
}
