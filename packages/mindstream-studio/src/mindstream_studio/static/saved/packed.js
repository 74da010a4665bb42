/** A page saved to a file: the API's answers are packed in it and replace the network. */
import { answerBy } from "../network.js";
import { unpack } from "./unpack.js";

/** @typedef {import("../events.js").Row} Row @typedef {import("../pages/traces/shapes.js").Call} Call */
/**
 * @typedef {{link: string, answers: Record<string, unknown>, rows: Row[], calls: Call[],
 *   recalls: {query: string, as_of: number, answer: unknown}[]}} Packed
 *   `answers`: by path below /api/v1; `rows`, `calls`, `recalls`: data from which other requests are answered
 */

const API = "/recorded/api/v1";

const packed = openFile();
answerBy(answer);
import("../app.js");

/** Unpack the file's data, and open its main page unless the address names another one. @returns {Promise<Packed>} */
async function openFile() {
  const found = await unpack((document.getElementById("recording")?.textContent ?? "").replace(/\s/g, ""));
  if (window.location.hash) return found;
  const gone = new Promise((resolve) => window.addEventListener("hashchange", resolve, { once: true }));
  window.location.replace(found.link);
  await gone;
  return found;
}

/** @param {string} address @param {RequestInit} init */
async function answer(address, init) {
  const all = await packed.catch(() => null);
  init.signal?.throwIfAborted();
  if (!all) return answered(500, { detail: "The file cannot be read: it is damaged, or this browser is older than 2024." });
  const found = answerOf(all, address, init);
  return found ? answered(200, found) : answered(404, { detail: "The file does not contain this part." });
}

/** @param {number} status @param {unknown} told */
const answered = (status, told) => new Response(JSON.stringify(told), { status });

/** @param {Packed} all @param {string} address @param {RequestInit} init */
function answerOf(all, address, init) {
  const [path = "", words = ""] = address.replace(API, "").split("?");
  const query = new URLSearchParams(words);
  if (Object.hasOwn(all.answers, path)) return all.answers[path];
  if (path.endsWith("/log")) return rowsOf(all.rows, query);
  if (path.endsWith("/calls")) return callsOf(all.calls, query);
  if (!path.endsWith("/memories/recall")) return undefined;
  const asked = JSON.parse(String(init.body));
  return all.recalls.find((each) => each.query === asked.query && each.as_of === asked.as_of)?.answer ?? { memories: [] };
}

/** @param {URLSearchParams} query @param {string} name @param {number} usual */
const numberIn = (query, name, usual) => Number(query.get(name) ?? usual);

/** Return one page of the log in the form of the API. @param {Row[]} rows oldest first @param {URLSearchParams} query */
function rowsOf(rows, query) {
  const kinds = query.get("kinds")?.split(",");
  const found = rows.filter(({ seq, event }) => seq > numberIn(query, "after", 0) && seq <= numberIn(query, "upto", Infinity) && (!kinds || kinds.includes(event)));
  return { rows: (query.get("newest") ? found.reverse() : found).slice(0, numberIn(query, "limit", 50)), next: "" };
}

/** Return one page of calls in the form of the API. @param {Call[]} calls newest first @param {URLSearchParams} query */
function callsOf(calls, query) {
  const [role, about, from, most] = [query.get("role"), numberIn(query, "about", 0), numberIn(query, "cursor", 0), numberIn(query, "limit", 50)];
  const found = calls.filter((call) => call.seq <= numberIn(query, "upto", Infinity)
    && call.at >= numberIn(query, "since", 0) && call.at <= numberIn(query, "until", Infinity)
    && (!role || call.role === role) && (!about || call.about.includes(about)));
  return { calls: found.slice(from, from + most), next: found.length > from + most ? String(from + most) : "" };
}
