/**
 * The log as it grows: one stream of events a page, that is opened again by itself where it breaks.
 *
 * `onRow` hears rows from now on (`listen` is called by the shell). While the page is hidden the stream is closed; when it
 * is seen again, or the server is back, `connection` is "back" for a moment, and every open query is asked again.
 */
import { signal } from "./html.js";

/** @typedef {{seq: number, event: string, at: number, by: string, user: string, [field: string]: any}} Row */
/** @typedef {"opening" | "live" | "back" | "lost" | "recorded"} Connection */

const AGAIN_MS = 250;
/** The server says at least every 15 s that it is there. */
const SILENT_MS = 40_000;

export const connection = signal(/** @type {Connection} */ ("opening"));
/** The newest row of the log that is known here. */
export const newest = signal(0);

/** @type {Set<{kinds: Set<string>, hear: (row: Row) => void}>} */
const hearers = new Set();

/**
 * Hear rows of these kinds ([]: of all) until the returned function is called; pieces of answers and changes of operations too.
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
  newest.value = 0;
  if (base) {
    connection.value = "recorded";
    const stop = new AbortController();
    readNewest(base, user, stop.signal).catch(() => {});
    return () => stop.abort();
  }
  const ended = new AbortController();
  connection.value = "opening";
  follow(user, ended.signal);
  return () => ended.abort();
}

/** A recording does not grow: its newest row is asked for once. @param {string} base @param {string} user @param {AbortSignal} until */
async function readNewest(base, user, until) {
  const answer = await fetch(`${base}/api/v1/users/${encodeURIComponent(user)}/log?newest=true&limit=1`, { signal: until });
  const { rows } = await answer.json();
  newest.value = rows[0]?.seq ?? 0;
}

/** @param {string} user @param {AbortSignal} until */
async function follow(user, until) {
  let last = "";
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
      // the server is away, or the page is hidden
    }
    document.removeEventListener("visibilitychange", hide);
    until.removeEventListener("abort", halt);
    if (until.aborted) return;
    if (!document.hidden) connection.value = "lost";
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Wait until the page is seen. @param {AbortSignal} until */
function seen(until) {
  return new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    if (!document.hidden || until.aborted) return resolve();
    const look = () => { if (!document.hidden) { document.removeEventListener("visibilitychange", look); resolve(); } };
    document.addEventListener("visibilitychange", look);
  });
}

/**
 * Read one stream to its end; returns the id to go on after.
 * @param {string} user @param {string} last @param {AbortController} stop
 */
async function readStream(user, last, stop) {
  /** @type {Record<string, string>} */
  const headers = { accept: "text/event-stream" };
  if (last) headers["last-event-id"] = last;
  const answer = await fetch(`/api/v1/events?user=${encodeURIComponent(user)}`, { headers, signal: stop.signal });
  if (!answer.ok || !answer.body) return last;
  connection.value = connection.value === "opening" ? "live" : "back";
  connection.value = "live";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let timer = window.setTimeout(() => stop.abort(), SILENT_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return last;
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

/** Take one event of the stream; returns its id. @param {string} text */
function take(text) {
  let [id, data] = ["", ""];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("id:")) id = line.slice(3).trim();
    else if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (id) newest.value = Math.max(newest.value, Number(id));
  if (!data) return id;
  const row = JSON.parse(data);
  for (const each of [...hearers]) if (!each.kinds.size || each.kinds.has(row.event)) each.hear(row);
  return id;
}
