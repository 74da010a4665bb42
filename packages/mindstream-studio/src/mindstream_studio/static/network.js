/**
 * How a page asks: `request`, for everything. Where the server wants a token, it goes along in a header, and never in a link;
 * it is kept as long as the tab is open. A page that was saved to a file has its answers in it (`saved/packed.js`).
 */
import { signal } from "./html.js";

const KEPT = "mindstream.token";

/** The pages that a file holds; null: this is the live studio. */
export const held = document.getElementById("app")?.dataset.pages?.split(" ") ?? null;
export const token = signal((!held && window.sessionStorage.getItem(KEPT)) || "");
/** Why a token is asked for: the shell then shows the sign-in in place of a page. */
export const wanted = signal(/** @type {"" | "none" | "refused" | "another"} */ (""));

let send = (/** @type {string} */ address, /** @type {RequestInit} */ init) => fetch(address, init);

/** Have what is packed in a file answer from now on. @param {typeof send} answer */
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

/** Use a token from now on; "": none. @param {string} text */
export function useToken(text) {
  token.value = text;
  if (text) window.sessionStorage.setItem(KEPT, text);
  else window.sessionStorage.removeItem(KEPT);
}
