/** Parts that the page of a gang and the page of a set have in common. */

import { h } from "../../dom.js";
import { age } from "./ages.js";
import { banner, longText, meaning, name, reason } from "./badges.js";
import { icon } from "./icons.js";
import { aboutLink } from "./links.js";

/**
 * A part of a page with a heading; null without content, so that no empty boxes are shown.
 * @param {string} key also its id
 * @param {string} title
 * @param {(Node|string|null|false)[]} content
 */
export function section(key, title, ...content) {
  const found = content.flat().filter(Boolean);
  if (!found.length) return null;
  return h("section", { class: `card part part-${key}`, "data-key": key, "aria-labelledby": `part-${key}` },
    h("h2", { id: `part-${key}` }, title), found);
}

/** Reasons with remedies, in the order in which the server ranks them. */
export function reasons(found, picture) {
  if (!found?.length) return null;
  return h("ol", { class: "reasons" }, found.map((each) =>
    h("li", { "data-key": `${each.code} ${each.about?.name ?? ""}` },
      h("div", { class: "reason-head" },
        reason(each.code), each.about && aboutText(each.about, picture),
        each.since && h("span", { class: "muted" }, "waits since ", age(each.since))),
      h("p", { class: "reason-message" }, longText(each.message)),
      each.remedy && h("p", { class: "remedy" }, icon("arrow"), longText(each.remedy)),
      meaning(each.code) && h("p", { class: "meaning" }, meaning(each.code)))));
}

/** What something is about, as a link where there is a page for it. */
export function aboutText(about, picture) {
  const href = aboutLink(about, picture);
  const words = [h("span", { class: "muted" }, `${about.kind} `), name(about.name)];
  return href ? h("a", { href, class: "about" }, words) : h("span", { class: "about" }, words);
}

/** Containers that do not run, or have ended before. */
export function containers(found) {
  if (!found?.length) return null;
  return simpleTable("Containers", ["Pod", "Container", "State", "Restarts"], found.map((each) => ({
    key: `${each.pod}/${each.container}`,
    cells: [name(each.pod), name(each.container),
      h("div", { class: "why" }, h("span", null, each.state), each.message && longText(each.message)),
      String(each.restarts ?? 0)],
  })));
}

/** Events, the oldest first. */
export function events(found, picture) {
  if (!found?.length) return null;
  return simpleTable("Events", ["Last", "Reason", "Object", "Message"], found.map((each, index) => ({
    key: each.name || `${each.time} ${index}`,
    cells: [age(each.time),
      h("span", { class: `reason-word ${each.type === "Warning" ? "warn" : ""}` }, each.reason),
      aboutText(each.about, picture),
      h("span", null, longText(each.message), each.count > 1 && h("span", { class: "times" }, ` ×${each.count}`))],
  })), ["", "word", "word", "wide"]);
}

/**
 * A table without sorting, for a part of a page.
 * @param {string} label
 * @param {string[]} titles
 * @param {{key: string, cells: (Node|string)[]}[]} rows
 * @param {string[]} kinds a class for each column
 */
export function simpleTable(label, titles, rows, kinds = []) {
  return h("table", { class: "table rows", "aria-label": label },
    h("thead", null, h("tr", null, titles.map((title, index) => h("th", { scope: "col", class: kinds[index] }, title)))),
    h("tbody", null, rows.map(({ key, cells }) => h("tr", { "data-key": key }, cells.map((cell, index) =>
      h("td", { class: kinds[index], "data-title": titles[index] }, cell))))));
}

/** A name and a value, for the facts at the top of a page. */
export function fact(title, ...value) {
  return h("div", { class: "tile", "data-key": title }, h("dt", null, title), h("dd", null, value));
}

/** Why the page could not be read, and a button to try again. */
export function failure(problem) {
  return banner("bad", problem.message, h("button", { type: "button", class: "text-button", "data-retry": "" }, "Try again"));
}

/** What could not be read, which is why the page may be incomplete. */
export function unreadNote(unread) {
  if (!unread?.length) return null;
  return banner("warn", `Not all could be read: ${unread.join("; ")}`);
}

/** Where the page is: links to the pages above it. */
export function breadcrumb(...steps) {
  return h("nav", { class: "breadcrumb", "aria-label": "Breadcrumb", "data-key": "breadcrumb" },
    h("ol", null, steps.map(([text, href]) => h("li", null, href ? h("a", { href }, text) : h("span", null, text)))));
}
