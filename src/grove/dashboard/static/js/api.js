/** Requests to the server of the dashboard. */

/** An answer that is not a success; its message is a line for the user. */
export class ApiProblem extends Error {
  /**
   * @param {number} status 0: the server could not be reached
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.name = "ApiProblem";
    this.status = status;
  }
}

/**
 * Reads JSON, or text if the answer is of another type.
 * @param {string} path such as `/api/picture`
 * @param {Object<string, string>} [params] empty values are left out
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export async function get(path, params = {}, options = {}) {
  const response = await request(urlOf(path, params), { signal: options.signal });
  const type = response.headers.get("Content-Type") ?? "";
  return type.includes("json") ? response.json() : response.text();
}

/**
 * Sends JSON.
 * @param {string} path
 * @param {Object} body
 * @returns {Promise<void>}
 */
export async function post(path, body) {
  await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/**
 * A path with its query.
 * @param {string} path
 * @param {Object<string, string>} params
 * @returns {string}
 */
export function urlOf(path, params) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined));
  return query.size > 0 ? `${path}?${query}` : path;
}

async function request(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new ApiProblem(0, "the dashboard cannot be reached: check that it still runs");
  }
  if (!response.ok) {
    throw new ApiProblem(response.status, await messageOf(response));
  }
  return response;
}

async function messageOf(response) {
  try {
    const answer = await response.json();
    if (typeof answer.error === "string" && answer.error !== "") {
      return answer.error;
    }
  } catch {
    // Not JSON: a proxy in between has answered.
  }
  return `the dashboard answered ${response.status} ${response.statusText}`.trim();
}
