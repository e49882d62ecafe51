/** Keeps the store up to date: reads the picture, follows the stream of deltas, and reconnects. */

import { ApiProblem, get, urlOf } from "./api.js";

/** The server sends a heartbeat every 10 s: after two that are missing the picture counts as stale. */
export const SILENCE_LIMIT = 25_000;
const FIRST_DELAY = 500;
/** Short, so that a dashboard that is back is noticed soon; the jitter spreads the pages of many users. */
const LONGEST_DELAY = 8_000;
const WATCH_INTERVAL = 5_000;

/**
 * How long to wait before an attempt.
 * @param {number} attempt from 0
 * @param {number} random from 0 to 1
 * @returns {number} milliseconds, between half of the back-off and all of it
 */
export function delayBefore(attempt, random) {
  return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(attempt, 10)) * (0.5 + random / 2);
}

/** The connection of a store. Start it once; after a sign-in call `retry`. */
export class Connection {
  #store;
  #stream = null;
  #timer = 0;
  #attempt = 0;
  #startedAt = 0;
  /** Grows with each start over: what an older request brings back is then ignored. */
  #epoch = 0;

  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.#store = store;
  }

  /** Connects, and stays connected. */
  start() {
    setInterval(() => this.#watch(), WATCH_INTERVAL);
    // Timers of hidden pages are slowed down or stopped, and sockets die during sleep: check when the page is back.
    document.addEventListener("visibilitychange", () => document.hidden || this.#watch());
    addEventListener("pageshow", (event) => event.persisted && this.retry());
    addEventListener("online", () => this.#store.status === "stale" && this.retry());
    this.retry();
  }

  /** Connects now, without waiting for the back-off. */
  retry() {
    this.#attempt = 0;
    this.#connect();
  }

  /** Stops following, because the user is not signed in; the picture is forgotten. */
  signOut() {
    this.#stop();
    this.#store.setStatus("signed-out");
    this.#store.clear();
  }

  async #connect() {
    this.#stop();
    this.#startedAt = Date.now();
    const epoch = this.#epoch;
    try {
      if (this.#store.picture === null) {
        await this.#readPicture(epoch);
      }
      if (epoch === this.#epoch) {
        this.#follow(epoch);
      }
    } catch (error) {
      this.#failed(epoch, error);
    }
  }

  async #readPicture(epoch) {
    const picture = await get("/api/picture");
    if (epoch === this.#epoch) {
      this.#store.load(picture);
      this.#setConnected();
    }
  }

  /**
   * Follows the deltas after the version that was applied last. The browser's own reconnection would ask for the
   * version of the first connection again, so each one is closed on its first error, and made by `#connect`.
   */
  #follow(epoch) {
    const url = urlOf("/api/stream", { since: this.#store.picture.version });
    const stream = new EventSource(url);
    this.#stream = stream;
    let opened = false;
    const when = (name, react) =>
      stream.addEventListener(name, (event) => {
        if (epoch === this.#epoch) {
          // Not when it opens: a server that ends each stream at once is still asked less and less often.
          this.#attempt = name === "open" ? this.#attempt : 0;
          react(event);
        }
      });
    when("open", () => {
      opened = true;
      this.#store.heardAt = Date.now();
      this.#setConnected();
    });
    when("delta", (event) => this.#store.apply(JSON.parse(event.data)));
    when("heartbeat", (event) => {
      this.#store.beat(JSON.parse(event.data));
      this.#setConnected();
    });
    when("reset", () => this.#reset());
    stream.addEventListener("error", () => {
      if (epoch === this.#epoch) {
        stream.close();
        this.#interrupted(epoch, opened ? null : url);
      }
    });
  }

  /** Reads the picture again. The present one stays on screen until then, so that nothing flickers. */
  async #reset() {
    this.#stop();
    const epoch = this.#epoch;
    try {
      await this.#readPicture(epoch);
      if (epoch === this.#epoch) {
        this.#follow(epoch);
      }
    } catch (error) {
      this.#failed(epoch, error);
    }
  }

  /** An EventSource does not say why it was refused: a request for the same says it. */
  async #interrupted(epoch, refusedUrl) {
    if (refusedUrl === null) {
      this.#failed(epoch, new ApiProblem(0, "the connection to the dashboard was interrupted"));
      return;
    }
    const abort = new AbortController();
    try {
      const response = await fetch(refusedUrl, { signal: abort.signal, cache: "no-store" });
      if (response.status === 401) {
        throw new ApiProblem(401, "");
      }
      throw new ApiProblem(response.status, response.ok ? "" : `the dashboard answered ${response.status}`);
    } catch (error) {
      this.#failed(epoch, error instanceof ApiProblem ? error : new ApiProblem(0, "the dashboard cannot be reached"));
    } finally {
      abort.abort();
    }
  }

  #failed(epoch, error) {
    if (epoch !== this.#epoch) {
      return;
    }
    if (error.status === 401) {
      this.signOut();
      return;
    }
    this.#store.setStatus(this.#store.picture === null ? "loading" : "stale", error.message);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), delayBefore(this.#attempt, Math.random()));
    this.#attempt += 1;
  }

  #watch() {
    const silent = Date.now() - Math.max(this.#store.heardAt, this.#startedAt) > SILENCE_LIMIT;
    if (silent && this.#stream !== null && this.#store.status !== "signed-out") {
      this.#store.setStatus("stale", "the dashboard has not answered for a while");
      this.#connect();
    }
  }

  #setConnected() {
    this.#store.setStatus(this.#store.picture.source.live ? "live" : "snapshot");
  }

  #stop() {
    this.#epoch += 1;
    clearTimeout(this.#timer);
    this.#stream?.close();
    this.#stream = null;
  }
}
