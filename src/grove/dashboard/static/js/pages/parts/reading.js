/** Reads one answer of the server, and again when something has changed. */

import { get } from "../../api.js";

/** A burst of changes is one reason to read again. */
const DEBOUNCE_MS = 500;

/**
 * `state` is `loading` before the first answer; afterwards `data` stays, also while it is read again or
 * if that fails: an old page with a note is better than none.
 */
export class Reading {
  /**
   * @param {string} path
   * @param {Record<string, string>} params
   * @param {() => void} changed called when there is something else to show
   */
  constructor(path, params, changed) {
    this.path = path;
    this.params = params;
    this.changed = changed;
    this.data = null;
    this.problem = null;
    this.state = "loading";
    this.timer = null;
    this.run = 0;
    this.read();
  }

  /** Reads soon, and once for all calls in the meantime. */
  again() {
    this.timer ??= setTimeout(() => this.read(), DEBOUNCE_MS);
  }

  /** Reads now. */
  async read() {
    clearTimeout(this.timer);
    this.timer = null;
    const run = ++this.run;
    let data = null;
    let problem = null;
    try {
      data = await get(this.path, this.params);
    } catch (error) {
      problem = error;
    }
    if (run !== this.run) return; // A later one has begun, or the page is gone.
    this.data = data ?? this.data;
    this.problem = problem;
    this.state = problem ? "failed" : "read";
    this.changed();
  }

  /** Reads now if a button of the page asks for it. */
  retryOnClick(element) {
    element.addEventListener("click", (event) => event.target.closest("[data-retry]") && this.read());
  }

  /** Whether the object is not there any more, or the viewer may not see it. */
  get gone() {
    return this.problem?.status === 404;
  }

  dispose() {
    clearTimeout(this.timer);
    this.run += 1;
  }
}
