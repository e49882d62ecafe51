/** Links of the page: `#/route/part?query`. Every selection and filter is in them. */

/** @typedef {{name: string, path: string[], query: URLSearchParams}} Route */

/**
 * Parses the hash of a location. What cannot be decoded is kept as it is.
 * @param {string} hash
 * @returns {Route} `path` has the parts after the name
 */
export function parse(hash) {
  const text = hash.replace(/^#?\/?/, "");
  const at = text.indexOf("?");
  const [path, query] = at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  const [name, ...parts] = path.split("/").filter((part) => part !== "").map(decoded);
  return { name: name ?? "map", path: parts, query: new URLSearchParams(query) };
}

/**
 * Builds a hash.
 * @param {string | string[]} route `map`, or its parts, such as `["workloads", namespace, name]`
 * @param {Object<string, string | null | undefined> | URLSearchParams} [params] empty values are left out
 * @returns {string}
 */
export function link(route, params = {}) {
  const parts = Array.isArray(route) ? route : route.split("/");
  const entries = params instanceof URLSearchParams ? [...params] : Object.entries(params);
  const query = entries
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${readable(value)}`)
    .join("&");
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return query === "" ? `#/${path}` : `#/${path}?${query}`;
}

/**
 * Goes to a link.
 * @param {string} hash
 * @param {{replace?: boolean}} [options] replace: the back button does not return to the present link
 */
export function go(hash, options = {}) {
  if (hash === location.hash) {
    return;
  }
  if (options.replace) {
    history.replaceState(history.state, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = hash;
  }
}

/**
 * The present link with some parameters changed.
 * @param {Route} route
 * @param {Object<string, string | null>} changes null or empty removes one
 * @returns {string}
 */
export function changed(route, changes) {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") {
      query.delete(name);
    } else {
      query.set(name, value);
    }
  }
  return link([route.name, ...route.path], query);
}

/** The slash of `namespace/name` stays legible in a query. */
function readable(value) {
  return encodeURIComponent(value).replaceAll("%2F", "/");
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
