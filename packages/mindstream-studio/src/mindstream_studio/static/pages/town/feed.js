/** Load a town's growing recording: first all of it, then additions; polling slows down while nothing is new. */
import { ask, whenAskedAgain } from "../../api.js";
import { base } from "../../state.js";

/** @typedef {{whole: boolean, step: number, next: string, recording: any}} Answer */
/** @typedef {{whole: (recording: any) => void, part: (recording: any) => void, failed: (error: Error | null) => void}} Told */

const LEAST_MS = 700, MOST_MS = 3_000;

export class Feed {
  /** @param {string} name @param {Told} told */
  constructor(name, told) {
    this.path = `/towns/${encodeURIComponent(name)}/recording`;
    this.told = told;
    this.next = "";
    this.wait = LEAST_MS;
    this.timer = 0;
    this.ended = new AbortController();
    this.onseen = () => { if (!document.hidden) this.soon(); };
    document.addEventListener("visibilitychange", this.onseen);
    this.leave = whenAskedAgain(() => this.soon()); // all queries are repeated, for example because the server is back: do not wait
    this.read();
  }

  /** Load additions at once, after an action of the user. */
  soon() {
    clearTimeout(this.timer);
    this.wait = LEAST_MS;
    this.read();
  }

  async read() {
    const { signal } = this.ended, asked = this.next;
    try {
      const found = /** @type {Answer} */ (await ask({ path: this.path, query: asked ? { since: asked } : {} }, signal));
      if (signal.aborted || asked !== this.next) return;
      const same = found.next === this.next;
      this.next = found.next;
      if (found.whole) this.told.whole(found.recording);
      else if (!same) this.told.part(found.recording);
      this.wait = same ? Math.min(MOST_MS, this.wait * 1.5) : LEAST_MS;
      this.told.failed(null);
    } catch (error) {
      if (signal.aborted) return;
      this.wait = LEAST_MS;
      this.told.failed(/** @type {Error} */ (error));
    }
    clearTimeout(this.timer);
    if (!base.value) this.timer = window.setTimeout(() => { if (!document.hidden) this.read(); }, this.wait);
  }

  close() {
    this.ended.abort();
    clearTimeout(this.timer);
    this.leave();
    document.removeEventListener("visibilitychange", this.onseen);
  }
}
