/**
 * The growing log: one stream of events per page, which is reopened when the connection breaks.
 *
 * `onRow` registers a listener for new rows (`listen` is called by the shell). The stream is closed while the page is hidden.
 * When the page is visible again, or the server is back, `connection` is "back" for a moment, and all open queries are repeated.
 */
import { signal } from "./html.js";
import { request, wanted } from "./network.js";

/** @typedef {{seq: number, event: string, at: number, by: string, user: string, [field: string]: any}} Row */
/** @typedef {"opening" | "live" | "back" | "lost" | "recorded"} Connection */

const AGAIN_MS = 250;
/** Maximum milliseconds between signs of life; the server sends one at least every 15 s. */
const SILENT_MS = 40_000;

export const connection = signal(/** @type {Connection} */ ("opening"));
/** The newest row of the log that this page knows. */
export const newest = signal(0);
/** The log (base and user) that `newest` belongs to; null: none yet. */
let newestOf = /** @type {string | null} */ (null);

/** @type {Set<{kinds: Set<string>, hear: (row: Row) => void}>} */
const hearers = new Set();

/**
 * Call `hear` for new rows of these kinds ([]: all kinds, also parts of answers and changes of operations), until the returned function is called.
 * @param {string[]} kinds @param {(row: Row) => void} hear
 */
export function onRow(kinds, hear) {
  const one = { kinds: new Set(kinds), hear };
  hearers.add(one);
  return () => { hearers.delete(one); };
}

/**
 * Follow the log of a user until the returned function is called.
 * @param {string} base @param {string} user
 */
export function listen(base, user) {
  const ended = new AbortController();
  if (base) {
    connection.value = "recorded";
    readNewest(base, user, ended.signal).catch(() => {}); // a recording does not grow, so one request is enough
  } else {
    connection.value = "opening";
    follow(user, newestOf === base ? String(newest.value) : "", ended.signal);
  }
  return () => ended.abort();
}

/**
 * Read the number of the newest row of a log. Queries sent after this, together with the stream from that row on, miss nothing.
 * @param {string} base @param {string} user @param {AbortSignal} [until]
 */
export async function readNewest(base, user, until) {
  newestOf = null;
  newest.value = 0;
  const address = `${base}/api/v1/users/${encodeURIComponent(user)}/log?newest=true&limit=1`;
  const { rows } = await (await request(address, until && { signal: until })).json();
  newest.value = rows[0]?.seq ?? 0;
  newestOf = base;
}

/** @param {string} user @param {string} last the row after which the stream starts; "": at the newest row @param {AbortSignal} until */
async function follow(user, last, until) {
  while (!until.aborted) {
    await seen(until);
    const stop = new AbortController();
    const halt = () => stop.abort();
    until.addEventListener("abort", halt, { once: true });
    const hide = () => { if (document.hidden) halt(); };
    document.addEventListener("visibilitychange", hide);
    try {
      last = await readStream(user, last, stop);
    } catch {
      // the server is not reachable, or the page is hidden
    }
    document.removeEventListener("visibilitychange", hide);
    until.removeEventListener("abort", halt);
    if (until.aborted || wanted.value) return; // after a sign-in the shell calls `listen` again
    if (!document.hidden) connection.value = "lost";
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Wait until the page is visible. @param {AbortSignal} until */
function seen(until) {
  return new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    if (!document.hidden || until.aborted) return resolve();
    const look = () => { if (!document.hidden) { document.removeEventListener("visibilitychange", look); resolve(); } };
    document.addEventListener("visibilitychange", look);
  });
}

/**
 * Read one stream to its end; return the id after which the next stream continues.
 * @param {string} user @param {string} last @param {AbortController} stop
 */
async function readStream(user, last, stop) {
  /** @type {Record<string, string>} */
  const headers = { accept: "text/event-stream" };
  if (last) headers["last-event-id"] = last;
  const answer = await request(`/api/v1/events?user=${encodeURIComponent(user)}`, { headers, signal: stop.signal });
  if (!answer.ok || !answer.body) return last;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let timer = window.setTimeout(() => stop.abort(), SILENT_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return last;
      if (connection.value !== "live") {
        if (connection.value !== "opening" || !last) connection.value = "back"; // rows may have been missed
        connection.value = "live";
      }
      clearTimeout(timer);
      timer = window.setTimeout(() => stop.abort(), SILENT_MS);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const each of parts) last = take(each) || last;
    }
  } catch {
    return last;
  } finally {
    clearTimeout(timer);
  }
}

/** Handle one event of the stream; return its id. @param {string} text */
function take(text) {
  let [id, data] = ["", ""];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("id:")) id = line.slice(3).trim();
    else if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (id) newest.value = Math.max(newest.value, Number(id));
  if (!data) return id;
  const row = JSON.parse(data);
  if (row.event === "mind_erased") location.reload(); // the shown data were erased, by this or another process
  for (const each of [...hearers]) if (!each.kinds.size || each.kinds.has(row.event)) each.hear(row);
  return id;
}
