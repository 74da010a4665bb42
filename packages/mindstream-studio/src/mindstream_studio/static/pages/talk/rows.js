/** Load the log rows of a conversation, and new rows as they are written; select those of this conversation. */
import { useEffect, useMemo, useRef, useState } from "../../html.js";
import { ask, whenAskedAgain } from "../../api.js";
import { connection, onRow } from "../../events.js";
import { BELIEVING, KINDS } from "./shapes.js";

/** @typedef {import("./shapes.js").Row} Row */

const A_PAGE = 200;
const SOON_MS = 40;
/** Number of rows before the first utterance in which the session is opened. */
const BEFORE = 10;

/** Read all rows of some kinds after a row. @param {number} after @param {string[]} kinds @param {AbortSignal} until @param {number} [upto] */
async function readAll(after, kinds, until, upto = Infinity) {
  /** @type {Row[]} */
  const found = [];
  for (let from = after; ;) {
    const query = { after: from, limit: A_PAGE, kinds: kinds.join() };
    const { rows } = /** @type {{rows: Row[]}} */ (await ask({ path: "/users/{user}/log", query }, until));
    const last = rows.at(-1);
    found.push(...rows.filter(({ seq }) => seq <= upto));
    if (!last || rows.length < A_PAGE || last.seq >= upto) return found;
    from = last.seq;
  }
}

/**
 * The rows of a conversation from its beginning, and the beliefs and plans before; undefined while they are loaded.
 * @param {number | undefined} from  the row where the conversation began; undefined: it has no utterance yet
 * @returns {{rows: Row[] | undefined, problem: Error | undefined, again: () => void}}
 */
export function useRows(from) {
  const [kept, keep] = useState(/** @type {{from?: number | undefined, rows?: Row[], problem?: Error}} */ ({}));
  const [round, setRound] = useState(0);
  const newest = useRef(0);
  const again = () => setRound((before) => before + 1);

  useEffect(() => {
    if (from === undefined) return undefined;
    const stop = new AbortController();
    const begin = Math.max(0, from - BEFORE);
    Promise.all([readAll(0, BELIEVING, stop.signal, begin), readAll(begin, KINDS, stop.signal)]).then(([before, rows]) => {
      newest.current = rows.at(-1)?.seq ?? begin;
      keep({ from, rows: [...before, ...rows] });
    }, (problem) => { if (!stop.signal.aborted) keep((old) => ({ ...old, from, problem })); });
    return () => stop.abort();
  }, [from, round]);

  useEffect(() => (from === undefined ? undefined : follow(newest, (more) => keep((old) => (
    old.from === from && old.rows ? { from, rows: joined(old.rows, more) } : old)))), [from, round]);
  useEffect(() => whenAskedAgain(again), []);
  const ours = kept.from === from;
  return { rows: from === undefined ? [] : ours ? kept.rows : undefined, problem: ours ? kept.problem : undefined, again };
}

/** @param {Row[]} old @param {Row[]} more */
function joined(old, more) {
  const last = old.at(-1)?.seq ?? 0;
  const new_ = more.filter(({ seq }) => seq > last);
  return new_.length ? [...old, ...new_] : old;
}

/**
 * Load new rows whenever one is written, so that none is missed.
 * @param {{current: number}} newest @param {(rows: Row[]) => void} take
 */
function follow(newest, take) {
  const stop = new AbortController();
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      if (!newest.current) return look();
      return readAll(newest.current, KINDS, stop.signal).then((rows) => {
        newest.current = Math.max(newest.current, rows.at(-1)?.seq ?? 0);
        take(rows);
      }, () => {}); // when the server is back, all rows are read again
    }, SOON_MS);
  };
  const deaf = onRow(KINDS, look);
  let was = connection.value;
  const unsubscribe = connection.subscribe((now) => {
    if (now === "live" && was === "opening") look();
    was = now;
  });
  return () => { stop.abort(); clearTimeout(timer); deaf(); unsubscribe(); };
}

/** Return the utterances that a row names. @param {Row} row @returns {number[]} */
export function aboutOf(row) {
  if (row.answers) return [row.answers];
  return Array.isArray(row.about) ? row.about : row.about ? [row.about] : [];
}

/**
 * Leave out rows of other conversations at the same time. A row names its utterance; a row that names none belongs to
 * the row before it, or to the latest utterance.
 * @param {Row[]} rows @param {string} session
 */
export function ofTalk(rows, session) {
  /** @type {Map<number, string>} */
  const talks = new Map();
  let current = "";
  return rows.filter((row) => {
    if (row.event === "heard") talks.set(row.seq, row.session);
    const about = aboutOf(row).at(-1);
    if (row.session !== undefined) current = row.session;
    else if (about !== undefined) current = talks.get(about) ?? "";
    return current === session;
  });
}

/** @param {Row[] | undefined} rows @param {string} session */
export function useTalkRows(rows, session) {
  return useMemo(() => (rows ? ofTalk(rows, session) : undefined), [rows, session]);
}
