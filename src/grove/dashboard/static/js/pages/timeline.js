/** What has happened to a set: its start, rollouts, recoveries, scaling and placement, the latest first. */

import { h } from "../dom.js";
import { age, dateText } from "./parts/ages.js";
import { longText } from "./parts/badges.js";
import { icon } from "./parts/icons.js";
import { show } from "./parts/morph.js";
import { aboutText } from "./parts/sections.js";

const KINDS = { start: "Start", rollout: "Rollout", recovery: "Recovery", scaling: "Scaling", placement: "Placement", other: "Other" };
const ENTRIES = 50;

/**
 * @param {{picture: object|null}} store
 * @returns {{element: HTMLElement, update: (entries: object[], leftOut?: number) => void}}
 */
export function timeline(store) {
  const hidden = new Set();
  let warnings = false;
  let limit = ENTRIES;
  let entries = [];
  const tools = h("div", { class: "kinds", role: "group", "aria-label": "Show in the time line" });
  const body = h("div", { class: "timeline-body" });
  const note = h("p", { class: "note" });
  const element = h("section", { class: "card part part-timeline", "aria-labelledby": "part-timeline" },
    h("h2", { id: "part-timeline" }, "Time line"), tools, body, note);

  const draw = () => {
    const kinds = Object.keys(KINDS).filter((kind) => entries.some((entry) => kindOf(entry) === kind));
    show(tools,
      kinds.map((kind) => chip(kind, KINDS[kind], !hidden.has(kind))),
      entries.some((entry) => entry.severity === "warning") && chip("warnings", "Only warnings", warnings));
    const found = entries.filter((entry) => !hidden.has(kindOf(entry)) && (!warnings || entry.severity === "warning"));
    const shown = found.slice(-limit).reverse();
    show(body,
      shown.length ? days(shown).map((day) => dayElement(day, store.picture)) : h("p", { class: "note" }, entries.length ? "Nothing of this kind." : "Nothing is known: events are kept for an hour, unless the API server is configured otherwise."),
      found.length > limit && h("button", { type: "button", class: "text-button", "data-more": "" }, `Show all ${found.length}`));
  };
  element.addEventListener("click", (event) => {
    const kind = event.target.closest("[data-kind]")?.dataset.kind;
    if (event.target.closest("[data-more]")) limit = Infinity;
    else if (kind === "warnings") warnings = !warnings;
    else if (kind) hidden.delete(kind) || hidden.add(kind);
    else return;
    draw();
  });
  return {
    element,
    update(found, leftOut = 0) {
      entries = found ?? [];
      note.textContent = leftOut ? `${leftOut} more are not shown.` : "";
      draw();
    },
  };
}

function kindOf(entry) {
  return entry.kind in KINDS ? entry.kind : "other";
}

function chip(kind, title, on) {
  return h("button", { type: "button", class: "chip", "data-key": kind, "data-kind": kind, "aria-pressed": String(on) }, kind in KINDS && icon(kind), title);
}

/** Entries by day, and within a day by minute. */
function days(entries) {
  const found = [];
  for (const entry of entries) {
    const at = new Date(entry.time);
    const day = at.toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" });
    const minute = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    if (found.at(-1)?.day !== day) found.push({ day, minutes: [] });
    const { minutes } = found.at(-1);
    if (minutes.at(-1)?.minute !== minute) minutes.push({ minute, entries: [] });
    minutes.at(-1).entries.push(entry);
  }
  return found;
}

function dayElement({ day, minutes }, picture) {
  return h("div", { class: "day", "data-key": day }, h("h3", null, day),
    h("ol", { class: "minutes" }, minutes.map(({ minute, entries }) =>
      h("li", { class: "minute", "data-key": minute },
        h("span", { class: "minute-time" }, minute),
        h("ol", { class: "entries" }, entries.map((entry) => entryElement(entry, picture)))))));
}

function entryElement(entry, picture) {
  const kind = kindOf(entry);
  const warns = entry.severity === "warning";
  return h("li", { class: `entry ${kind} ${warns ? "warn" : ""}`, "data-key": `${entry.time} ${entry.about?.name} ${entry.title}` },
    h("span", { class: "dot", title: KINDS[kind] }, icon(warns ? "alert" : kind), h("span", { class: "visually-hidden" }, `${KINDS[kind]}${warns ? ", warning" : ""}: `)),
    h("div", { class: "entry-text" },
      h("div", { class: "entry-head" }, h("strong", null, entry.title), entry.count > 1 && h("span", { class: "times" }, `×${entry.count}`),
        h("span", { class: "entry-age", title: dateText(entry.time) }, age(entry.time))),
      entry.about && h("div", { class: "entry-about" }, aboutText(entry.about, picture)),
      entry.message && h("div", { class: "entry-message" }, longText(entry.message, 200))));
}
