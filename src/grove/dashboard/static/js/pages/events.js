/** The latest events of the operator. */

import { h } from "../dom.js";
import { age } from "./parts/ages.js";
import { empty, longText, name, tone } from "./parts/badges.js";
import { icon } from "./parts/icons.js";
import { listing } from "./parts/listing.js";
import { latestEvents } from "./parts/events_of.js";
import { aboutText } from "./parts/sections.js";

/**
 * @param {import("../store.js").Store} store
 * @param {{path: string[], query: URLSearchParams}} params
 */
export function page(store, params) {
  return listing(store, params.query, {
    route: "events",
    title: "Events",
    thing: "event",
    rows: () => latestEvents(store.picture),
    columns: columns(store),
    choices: [
      { key: "type", title: "Type", all: "All types", value: (row) => row.type },
      { key: "reason", title: "Reason", all: "All reasons", value: (row) => row.reason },
      { key: "namespace", title: "Namespace", all: "All namespaces", value: (row) => row.about?.namespace ?? "" },
    ],
    text: (row) => [row.type, row.reason, row.about?.kind, row.about?.namespace, row.about?.name, row.message].join(" "),
    order: "-time",
    nothing: (filtered) => (filtered
      ? empty("No event matches", "Change the search or the filters above.", "search")
      : noEvents(store.picture)),
  });
}

function noEvents(picture) {
  if (picture?.source.live === false) return empty("A snapshot has no events", "It has the objects of the cluster, with their conditions.", "clock");
  return empty("There are no events", "The API server keeps events for an hour, unless it is configured otherwise.", "clock");
}

/** The type of an event. */
function type(event) {
  return h("span", { class: `state ${event.type === "Warning" ? tone("warning") : "plain"}` },
    event.type === "Warning" && icon("alert"), event.type);
}

function columns(store) {
  return [
    { key: "time", title: "Last", kind: "number", value: (row) => row.time, cell: (row) => age(row.time) },
    { key: "type", title: "Type", value: (row) => row.type, cell: type },
    { key: "reason", title: "Reason", kind: "word", value: (row) => row.reason, cell: (row) => h("span", { class: "reason-word" }, row.reason) },
    { key: "namespace", title: "Namespace", value: (row) => row.about?.namespace ?? "", cell: (row) => name(row.about?.namespace ?? "–") },
    { key: "about", title: "Object", value: (row) => row.about?.name ?? "", cell: (row) => aboutText(row.about, store.picture) },
    {
      key: "message",
      title: "Message",
      kind: "wide",
      cell: (row) => h("span", null, longText(row.message, 240), row.count > 1 && h("span", { class: "times" }, ` ×${row.count}`)),
    },
  ];
}
