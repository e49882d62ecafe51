/** All sets. */

import { h } from "../dom.js";
import { age } from "./parts/ages.js";
import { empty, longText, name, reason, share, verdict, verdictTone } from "./parts/badges.js";
import { setLink, splitKey } from "./parts/links.js";
import { listing } from "./parts/listing.js";

/** What needs attention comes first. */
const RANKS = ["Degraded", "Waiting", "Unknown", "Progressing", "Terminating", "Healthy"];

/**
 * @param {import("../store.js").Store} store
 * @param {{path: string[], query: URLSearchParams}} params
 */
export function page(store, params) {
  return listing(store, params.query, {
    route: "workloads",
    title: "Workloads",
    thing: "workload",
    rows: () => rows(store.picture),
    columns: COLUMNS,
    choices: [
      { key: "namespace", title: "Namespace", all: "All namespaces", value: (row) => row.namespace },
      { key: "verdict", title: "State", all: "All states", value: (row) => row.verdict },
    ],
    text: (row) => [row.key, row.verdict, row.graph, row.reasons[0]?.code, row.reasons[0]?.message].join(" "),
    order: "verdict",
    nothing: (filtered) => nothing(store, filtered),
  });
}

const COLUMNS = [
  {
    key: "name",
    title: "Workload",
    kind: "main",
    value: (row) => row.name,
    cell: (row) => h("a", { href: setLink(row.key), class: "row-link" }, name(row.name)),
  },
  { key: "namespace", title: "Namespace", value: (row) => row.namespace, cell: (row) => name(row.namespace) },
  {
    key: "verdict",
    title: "State",
    value: (row) => RANKS.indexOf(row.verdict),
    cell: (row) => verdict(row.verdict),
  },
  {
    key: "available",
    title: "Available",
    value: (row) => (row.replicas ? row.available / row.replicas : 1),
    cell: (row) => share(row.available, row.replicas, verdictTone(row.verdict)),
  },
  { key: "gangs", title: "Gangs", kind: "number", value: (row) => row.gangs.all, cell: (row) => `${row.gangs.running}/${row.gangs.all}` },
  { key: "pods", title: "Pods", kind: "number", value: (row) => row.pods.all, cell: (row) => `${row.pods.ready}/${row.pods.all}` },
  { key: "graph", title: "Graph", value: (row) => row.graph, cell: (row) => (row.graph ? name(row.graph) : "–") },
  {
    key: "reason",
    title: "First reason",
    kind: "wide",
    value: (row) => row.reasons[0]?.code ?? "",
    cell: (row) => why(row),
  },
  { key: "created", title: "Age", kind: "number", value: (row) => row.created, cell: (row) => age(row.created) },
];

function why(row) {
  const first = row.reasons[0];
  if (!first) return h("span", { class: "muted" }, "–");
  return h("div", { class: "why" }, reason(first.code, setLink(row.key)), longText(first.message, 160));
}

/** A row for each set; its gangs and pods are counted from the gangs of the picture. */
function rows(picture) {
  const counts = new Map();
  for (const gang of Object.values(picture?.gangs ?? {})) {
    const found = counts.get(gang.set) ?? { gangs: { running: 0, all: 0 }, pods: { ready: 0, all: 0 } };
    found.gangs.all += 1;
    found.gangs.running += gang.phase === "Running" ? 1 : 0;
    found.pods.all += gang.pods ?? 0;
    found.pods.ready += gang.ready ?? 0;
    counts.set(gang.set, found);
  }
  return Object.entries(picture?.sets ?? {}).map(([key, each]) => {
    const [namespace, own] = splitKey(key);
    const none = { gangs: { running: 0, all: 0 }, pods: { ready: 0, all: 0 } };
    return { available: 0, replicas: 0, created: "", graph: "", reasons: [], ...none, ...counts.get(key), ...each, key, namespace, name: own };
  });
}

function nothing(store, filtered) {
  if (filtered) return empty("No workload matches", "Change the search or the filters above.", "search");
  const partly = Boolean(store.picture?.viewer?.namespaces);
  return empty(partly ? "There is no workload that you may see" : "There are no workloads",
    "Create a PodCliqueSet or a DynamoGraphDeployment, and it appears here.", "other");
}
