/** The picture that all pages show, kept up to date by deltas. No DOM, no network. */

import { fullConnection, fullGang, fullNode, fullPicture, fullSet, fullTopology } from "./wire.js";

/** How many events are kept: the server sends at most about as many with a picture. */
export const MAX_EVENTS = 500;

/**
 * Applies a delta to a picture, in place. Pure apart from that.
 * @param {import("./wire.js").Picture} picture
 * @param {Object} delta as sent; a field that is missing or null has not changed
 */
export function applyDelta(picture, delta) {
  picture.version = delta.version;
  picture.now = delta.now;
  merge(picture.nodes, delta.nodes, fullNode);
  merge(picture.gangs, delta.gangs, fullGang);
  merge(picture.sets, delta.sets, fullSet);
  if (given(delta.connection)) {
    picture.connection = fullConnection(delta.connection);
  }
  if (given(delta.operator)) {
    picture.operator = delta.operator;
  }
  if (given(delta.unread)) {
    picture.unread = delta.unread;
  }
  if (given(delta.topologies)) {
    picture.topologies = delta.topologies.map(fullTopology);
  }
  if (given(delta.events) && delta.events.length > 0) {
    picture.events = withEvents(picture.events, delta.events);
  }
}

/**
 * The store. Events: `change` (detail: the delta, or null if everything may have changed), `status` (the state of
 * the connection, of the operator or of the API server has changed).
 */
export class Store extends EventTarget {
  constructor() {
    super();
    /** @type {import("./wire.js").Picture | null} */
    this.picture = null;
    /** @type {"loading" | "live" | "stale" | "signed-out" | "snapshot"} */
    this.status = "loading";
    /** Why the connection to the dashboard is interrupted; one line. */
    this.problem = "";
    /** When the server was heard last, by the clock of this browser. */
    this.heardAt = Date.now();
    /** The clock of the server minus the one of this browser, in milliseconds. */
    this.clockOffset = 0;
  }

  /**
   * The time by the clock of the server, in milliseconds: ages are right if the clock of this browser is not. The clock
   * of a snapshot stands still.
   */
  now() {
    return (this.picture?.source.live === false ? this.heardAt : Date.now()) + this.clockOffset;
  }

  /** Takes a picture that replaces the present one. */
  load(sent) {
    this.picture = fullPicture(sent);
    this.#heard(sent.now);
    this.#announce(null);
  }

  /** Takes a delta. */
  apply(delta) {
    if (this.picture === null) {
      return;
    }
    applyDelta(this.picture, delta);
    this.#heard(delta.now);
    this.#announce(delta);
    if (given(delta.connection) || given(delta.operator)) {
      this.dispatchEvent(new Event("status"));
    }
  }

  /** Takes a heartbeat: the state of the connection and of the operator, as of now. */
  beat(heartbeat) {
    if (this.picture === null) {
      return;
    }
    this.picture.connection = fullConnection(heartbeat.connection);
    this.picture.operator = heartbeat.operator ?? null;
    this.#heard(heartbeat.now);
    this.dispatchEvent(new Event("status"));
  }

  /**
   * Sets the status.
   * @param {"loading" | "live" | "stale" | "signed-out" | "snapshot"} status
   * @param {string} [problem]
   */
  setStatus(status, problem = "") {
    if (status === this.status && problem === this.problem) {
      return;
    }
    this.status = status;
    this.problem = problem;
    this.dispatchEvent(new Event("status"));
  }

  /** Forgets the picture: the user has signed out, and the next one may see less. */
  clear() {
    this.picture = null;
    this.#announce(null);
  }

  #heard(now) {
    this.heardAt = Date.now();
    const server = Date.parse(now);
    if (!Number.isNaN(server)) {
      this.clockOffset = server - this.heardAt;
    }
  }

  #announce(delta) {
    this.dispatchEvent(new CustomEvent("change", { detail: delta }));
  }
}

function given(value) {
  return value !== null && value !== undefined;
}

function merge(objects, changes, fill) {
  for (const [key, value] of Object.entries(changes ?? {})) {
    if (value === null) {
      delete objects[key];
    } else {
      objects[key] = fill(value);
    }
  }
}

/** An event that occurs again has the name of the one before, and replaces it. */
function withEvents(events, more) {
  const names = new Set(more.map(eventKey).filter((key) => key !== ""));
  return [...events.filter((event) => !names.has(eventKey(event))), ...more].slice(-MAX_EVENTS);
}

function eventKey(event) {
  return event.name ? `${event.about?.namespace ?? ""}/${event.name}` : "";
}
