/**
 * The public API for pages: `ask` sends one request, `useQuery` keeps an answer current while a component is mounted.
 *
 * `base` is "" for the server's own data, "/recorded" for the shipped recordings (the same API, read-only). After a lost
 * connection or a restart of the server, all open queries are repeated.
 */
import { signal, useCallback, useEffect, useRef, useState } from "./html.js";
import { connection, onRow } from "./events.js";
import { request } from "./network.js";
import { base, user } from "./state.js";

/**
 * @typedef {{method?: "GET" | "POST" | "DELETE", path: string, query?: Record<string, string | number | boolean>,
 *   body?: Record<string, unknown>, key?: string}} Ask  `path`: below /api/v1; `{user}` in it is replaced by the user of the link;
 *   `key`: idempotency key: repeated requests with the same key have one effect
 */

/** An error response of the API (RFC 9457); `status` 0: the server is not reachable. */
export class Problem extends Error {
  /** @param {number} status @param {string} type @param {string} detail */
  constructor(status, type, detail) {
    super(detail);
    this.status = status;
    this.type = type;
  }
}

/** @param {Ask} one */
export function addressOf({ path, query = {} }) {
  const filled = path.replace("{user}", encodeURIComponent(user.value));
  const words = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
  return `${base.value}/api/v1${filled}${words ? `?${words}` : ""}`;
}

/**
 * Send one request and return the answer.
 * @template T
 * @param {Ask} one @param {AbortSignal} [until]
 * @returns {Promise<T>}
 * @throws {Problem}
 */
export async function ask(one, until) {
  const { method = one.body ? "POST" : "GET", body } = one;
  /** @type {RequestInit} */
  const init = { method, headers: { accept: "application/json" } };
  if (until) init.signal = until;
  if (method === "POST") {
    init.headers = { accept: "application/json", "content-type": "application/json", ...(one.key ? { "idempotency-key": one.key } : {}) };
    init.body = JSON.stringify(body ?? {});
  }
  let answer;
  try {
    answer = await request(addressOf(one), init);
  } catch (error) {
    if (until?.aborted) throw error;
    throw new Problem(0, "lost", "The server cannot be reached. This page continues when the server answers again.");
  }
  if (answer.ok) return /** @type {Promise<T>} */ (answer.json());
  const told = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, String(told.type ?? ""), String(told.detail ?? told.title ?? answer.statusText));
}

/** Make a unique key; also works on pages that were not loaded by https, where `crypto.randomUUID` is missing. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, "0")).join("");
}

/**
 * Start a long operation, and wait until it has ended.
 * @param {Ask} one @param {(progress: string) => void} [tell]
 * @returns {Promise<any>} the result of the operation
 * @throws {Problem} the operation was refused, or failed
 */
export async function askAndWait(one, tell = () => {}) {
  /** @type {any} */
  let operation = await ask(one);
  while (!["done", "failed", "cancelled", "interrupted"].includes(operation.state)) {
    tell(operation.progress.at(-1)?.text ?? operation.state);
    await new Promise((resolve) => setTimeout(resolve, 200));
    operation = await ask({ path: `/operations/${encodeURIComponent(operation.id)}` });
  }
  if (operation.state === "done") return operation.result;
  throw new Problem(500, operation.state, operation.problem?.detail ?? operation.problem ?? operation.state);
}

/** Milliseconds after a row until a query is repeated, because rows often arrive in groups. */
const SOON_MS = 120;

/** @type {Set<() => void>} */
const open = new Set();

/** Repeat all open queries, because data have changed or the server is back. */
export function askAllAgain() {
  setTimeout(() => { for (const each of [...open]) each(); }, 0); // components that are no longer shown have unregistered by then
}
connection.subscribe((now) => { if (now === "back") askAllAgain(); });

/** Register a function that is called whenever all queries are repeated. @param {() => void} act */
export function whenAskedAgain(act) {
  open.add(act);
  return () => { open.delete(act); };
}

/** The number of queries that wait for an answer; read by tests and by the shell. */
export const waiting = signal(0);

/**
 * Send a request, and repeat it when it changes, when rows of these kinds are written, or when the server is back. The
 * last answer stays until the next one arrives.
 * @template T
 * @param {Ask | null} one null: send no request
 * @param {{on?: string[]}} [when] kinds of rows that change the answer
 * @returns {{data: T | undefined, problem: Problem | undefined, asking: boolean, again: () => void}}
 */
export function useQuery(one, { on = [] } = {}) {
  const key = one && JSON.stringify([addressOf(one), one]);
  const [kept, keep] = useState(/** @type {{key?: string | null, data?: T, problem?: Problem}} */ ({}));
  const latest = useRef(one);
  latest.current = one;
  const going = useRef(/** @type {AbortController | null} */ (null));

  const again = useCallback(() => {
    const asked = latest.current;
    going.current?.abort();
    if (!asked) return;
    const stop = going.current = new AbortController();
    waiting.value += 1;
    ask(asked, stop.signal)
      .then((data) => { if (!stop.signal.aborted) keep({ key, data: /** @type {T} */ (data) }); }, (error) => {
        if (!stop.signal.aborted) keep((before) => ({ ...(before.key === key ? before : {}), key, problem: error }));
      })
      .finally(() => { waiting.value -= 1; });
  }, [key]);

  useEffect(() => {
    again();
    open.add(again);
    return () => { open.delete(again); going.current?.abort(); };
  }, [again]);

  useEffect(() => {
    if (!on.length || !one) return undefined;
    let timer = 0;
    const leave = onRow(on, () => { clearTimeout(timer); timer = window.setTimeout(again, SOON_MS); });
    return () => { clearTimeout(timer); leave(); };
  }, [again, on.join()]);
  const problem = kept.key === key ? kept.problem : undefined;
  return { data: one ? kept.data : undefined, problem, asking: kept.key !== key, again };
}
