/** All gangs that wait. */

import { age } from "./parts/ages.js";
import { empty, longText, name, reason } from "./parts/badges.js";
import { gangLink, setLink, splitKey } from "./parts/links.js";
import { listing } from "./parts/listing.js";
import { waitingGangs } from "./parts/waiting_gangs.js";
import { h } from "../dom.js";

/**
 * @param {import("../store.js").Store} store
 * @param {{path: string[], query: URLSearchParams}} params
 */
export function page(store, params) {
  return listing(store, params.query, {
    route: "waiting",
    title: "Waiting gangs",
    thing: "gang",
    rows: () => waitingGangs(store.picture),
    columns: COLUMNS,
    choices: [
      { key: "namespace", title: "Namespace", all: "All namespaces", value: (row) => row.namespace },
      { key: "reason", title: "Reason", all: "All reasons", value: (row) => row.waiting.code },
    ],
    text: (row) => [row.key, row.set, row.waiting.code, row.waiting.message].join(" "),
    order: "since",
    nothing: (filtered) => nothing(store, filtered),
  });
}

const COLUMNS = [
  {
    key: "gang",
    title: "Gang",
    kind: "main",
    value: (row) => row.name,
    cell: (row) => h("a", { href: gangLink(row.key), class: "row-link" }, name(row.name)),
  },
  { key: "namespace", title: "Namespace", value: (row) => row.namespace, cell: (row) => name(row.namespace) },
  {
    key: "set",
    title: "Workload",
    value: (row) => row.set,
    cell: (row) => h("a", { href: setLink(row.set), class: "quiet-link" }, name(splitKey(row.set)[1])),
  },
  {
    key: "reason",
    title: "Waits for",
    kind: "wide",
    value: (row) => row.waiting.code,
    cell: (row) => h("div", { class: "why" },
      reason(row.waiting.code, gangLink(row.key)),
      longText(row.waiting.message, 180),
      row.waiting.remedy && h("span", { class: "remedy" }, row.waiting.remedy)),
  },
  { key: "pods", title: "Pods", kind: "number", value: (row) => row.pods, cell: (row) => `${row.ready}/${row.pods}` },
  { key: "gpus", title: "GPUs", kind: "number", value: (row) => row.gpus, cell: (row) => String(row.gpus) },
  { key: "since", title: "Since", kind: "number", value: (row) => row.since, cell: (row) => age(row.since) },
];

function nothing(store, filtered) {
  if (filtered) return empty("No gang matches", "Change the search or the filters above.", "search");
  const partly = Boolean(store.picture?.viewer?.namespaces);
  return empty(partly ? "Nothing that you may see waits" : "Nothing waits",
    partly ? "Gangs of other namespaces are not listed." : "All gangs have nodes, and their pods start or run.");
}
