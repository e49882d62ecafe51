/** Times and ages for people. Pure. */

/**
 * The seconds since a time; null if there is none.
 * @param {string | null | undefined} time RFC 3339
 * @param {number} now milliseconds, usually `store.now()`
 * @returns {number | null}
 */
export function secondsSince(time, now) {
  const at = Date.parse(time ?? "");
  return Number.isNaN(at) ? null : Math.max(0, Math.floor((now - at) / 1000));
}

/**
 * An age in at most two units: `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`.
 * @param {number | null} seconds
 * @returns {string} empty for null
 */
export function ageText(seconds) {
  if (seconds === null) {
    return "";
  }
  if (seconds < 120) {
    return `${seconds} s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return two(hours, "h", minutes % 60, "min");
  }
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

/**
 * The age of a time.
 * @param {string | null | undefined} time
 * @param {number} now
 * @returns {string}
 */
export function age(time, now) {
  return ageText(secondsSince(time, now));
}

/**
 * A time of day, with the date if it is not today.
 * @param {string | null | undefined} time
 * @param {number} now
 * @returns {string}
 */
export function timeText(time, now) {
  const at = new Date(time ?? "");
  if (Number.isNaN(at.getTime())) {
    return "";
  }
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const today = new Date(now).toDateString() === at.toDateString();
  return today ? clock : `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${clock}`;
}

function two(large, largeUnit, small, smallUnit) {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
