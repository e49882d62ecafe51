/** The gangs of a picture that wait. Pure. */

import { splitKey } from "./links.js";

/**
 * Each with the fields of its summary, the one that waits longest first.
 * @param {{gangs?: Record<string, object>}|null} picture
 */
export function waitingGangs(picture) {
  return Object.entries(picture?.gangs ?? {})
    .filter(([, gang]) => gang.waiting)
    .map(([key, gang]) => {
      const [namespace, name] = splitKey(key);
      const since = gang.waitingSince || gang.waiting.since || gang.created || "";
      return { pods: 0, ready: 0, gpus: 0, ...gang, key, namespace, name, since };
    })
    .sort((one, other) => one.since.localeCompare(other.since) || one.key.localeCompare(other.key));
}
