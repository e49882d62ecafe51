/** Events of a picture. Pure. */

/**
 * Each event once, with its latest text, the newest first. An event that happens again is sent again under
 * the same name.
 * @param {{events?: object[]}|null} picture
 */
export function latestEvents(picture) {
  const found = new Map();
  for (const event of picture?.events ?? []) {
    const key = `${event.about?.namespace ?? ""}/${event.name || `${event.about?.name}.${event.reason}.${event.time}`}`;
    found.delete(key); // So that it moves to its latest place.
    found.set(key, { count: 1, ...event, key });
  }
  return [...found.values()].sort((one, other) => other.time.localeCompare(one.time) || one.key.localeCompare(other.key));
}
