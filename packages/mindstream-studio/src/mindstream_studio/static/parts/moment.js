/** Load the time of the log row that a link names. */
import { useQuery } from "../api.js";
import { seq } from "../state.js";

/** @returns {number | undefined} seconds since 1970; undefined: the link names no row, or the time is not loaded yet */
export function useMoment() {
  const at = seq.value;
  const wanted = at === "newest" ? null : { path: "/users/{user}/log", query: { after: at - 1, limit: 1 } };
  const { data } = useQuery(wanted);
  const rows = /** @type {{rows: {at: number}[]} | undefined} */ (data)?.rows;
  return at === "newest" ? undefined : rows?.[0]?.at;
}
