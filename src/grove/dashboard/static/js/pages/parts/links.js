/** Links to pages and to places of the map, and filters that are part of the address. */

import { link } from "../../router.js";

/** The namespace and the name in a key of the store. */
export function splitKey(key) {
  const at = key.indexOf("/");
  return [key.slice(0, at), key.slice(at + 1)];
}

/** The page of a gang that waits. */
export const gangLink = (key) => link(["waiting", ...splitKey(key)]);

/** The page of a set. */
export const setLink = (key) => link(["workloads", ...splitKey(key)]);

/** A gang on the map, with the domains of a level. */
export const mapGangLink = (key, level = "") => link("map", { gang: key, level });

/** A node on the map. */
export const mapNodeLink = (node) => link("map", { node });

/**
 * The page that says most about an object; empty if there is none.
 * @param {{kind: string, name: string, namespace?: string}|undefined} about
 * @param {{gangs?: object, sets?: object}|null} picture
 */
export function aboutLink(about, picture) {
  if (!about) return "";
  const key = `${about.namespace ?? ""}/${about.name}`;
  if (about.kind === "PodGang" && picture?.gangs?.[key]) {
    const gang = picture.gangs[key];
    return gang.waiting ? gangLink(key) : setLink(gang.set);
  }
  if (about.kind === "PodCliqueSet" && picture?.sets?.[key]) return setLink(key);
  if (about.kind === "Node") return mapNodeLink(about.name);
  return "";
}

/**
 * Writes filters into the address, so that it can be shared, without a step in the history.
 * @param {string|string[]} route
 * @param {Record<string, string>} values empty ones are left out
 */
export function rememberInAddress(route, values) {
  history.replaceState(history.state, "", link(route, values));
}
