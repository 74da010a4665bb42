/**
 * The token with which this page asks, where the server wants one: kept as long as the tab is open, sent in a header, and
 * never in a link. `wanted` says why one is asked for; the shell then shows the sign-in in place of a page.
 */
import { signal } from "./html.js";

const KEPT = "mindstream.token";

export const token = signal(window.sessionStorage.getItem(KEPT) ?? "");
export const wanted = signal(/** @type {"" | "none" | "refused" | "another"} */ (""));

/** Ask the server, with the token. @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
export async function fetchHere(path, init = {}) {
  const headers = new Headers(init.headers);
  if (token.value) headers.set("authorization", `Bearer ${token.value}`);
  const answer = await fetch(path, { ...init, headers });
  if (answer.status === 401) wanted.value = token.value ? "refused" : "none";
  return answer;
}

/** Use a token from now on; "": none. @param {string} text */
export function useToken(text) {
  token.value = text;
  if (text) window.sessionStorage.setItem(KEPT, text);
  else window.sessionStorage.removeItem(KEPT);
}
