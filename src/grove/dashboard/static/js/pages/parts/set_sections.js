/** Parts of the page of a set: how far it is, where its gangs are, and what has failed. */

import { h } from "../../dom.js";
import { age } from "./ages.js";
import { longText, name, plural, reason, share, state, tone } from "./badges.js";
import { gangLink, mapGangLink } from "./links.js";
import { aboutText, fact, section, simpleTable } from "./sections.js";

/** Rows of a table, until all are asked for. */
const ROWS = 12;

/** Numbers at the top of the page. */
export function facts(set, status) {
  const { replicas, constraints } = status;
  const gangs = status.gangs ?? [];
  const running = gangs.filter((gang) => gang.phase === "Running").length;
  const [ready, pods] = gangs.reduce(([one, all], gang) => [one + gang.ready, all + gang.pods], [0, 0]);
  const scores = gangs.map((gang) => gang.score).filter((score) => score !== null && score !== undefined);
  const worst = Math.min(...scores);
  return h("dl", { class: "tiles", "data-key": "facts" },
    replicas && fact("Replicas available", share(replicas.available, replicas.desired, colour(replicas.available, replicas.desired))),
    fact("Gangs running", share(running, gangs.length, colour(running, gangs.length))),
    fact("Pods ready", share(ready, pods, colour(ready, pods))),
    scores.length > 0 && fact("Placement score", worst.toFixed(2), h("span", { class: "tile-more" }, scores.length > 1 ? "the lowest of its gangs" : "1 is best")),
    constraints && fact("Topology", constraints.required ? `one ${constraints.required} each` : constraints.topology || "–", h("span", { class: "tile-more" }, enforcedText(constraints.enforced))));
}

function colour(part, whole) {
  return part >= whole ? "good" : "info";
}

function enforcedText(enforced) {
  if (enforced === true) return "enforced";
  return enforced === false ? "not enforced" : "not known yet";
}

/** The latest update. */
export function rollout(status) {
  const found = status.rollout;
  if (!found) return null;
  const line = (title, done, all) => all > 0 && h("div", { class: "progress-line" }, h("span", null, title), share(done, all, done >= all ? "good" : "info"));
  return section("rollout", "Rollout",
    h("p", { class: "line" }, state(found.state), waitingPods(found, status), " ",
      found.started && h("span", { class: "muted" }, "began ", age(found.started, "ago")), " ",
      found.ended && h("span", { class: "muted" }, "ended ", age(found.ended, "ago"))),
    h("div", { class: "progress" },
      line("Replicas", found.updatedReplicas, found.replicas), line("Cliques", found.updatedCliques, found.cliques), line("Groups", found.updatedGroups, found.groups)),
    found.updating?.length > 0 && h("p", { class: "note" }, `Now: replica ${found.updating.join(", ")}`));
}

/** Why an update does not go on: how many pods wait, and the first reason. */
function waitingPods(update, status) {
  const first = status.waitsFor?.[0];
  const pods = (status.gangs ?? []).reduce((sum, gang) => sum + Math.max(0, gang.pods - gang.ready), 0);
  if (update.state !== "Progressing" || !first || !pods) return null;
  return h("span", null, `, ${plural(pods, "pod")} ${pods === 1 ? "waits" : "wait"}: `, reason(first.code));
}

/** Whether topology constraints hold, and why not. */
export function constraints(status) {
  const found = status.constraints;
  if (!found) return null;
  const word = { true: "enforced", false: "not enforced" }[String(found.enforced)] ?? "not known yet";
  return section("constraints", "Topology constraints",
    h("p", { class: "line" }, state(word), " ", found.reason && h("span", { class: "muted" }, found.reason)),
    h("p", { class: "sentence" }, found.required ? `Each replica in one ${found.required}` : "Only parts of replicas are constrained",
      found.topology && h("span", { class: "muted" }, `, topology ${found.topology}`)),
    found.message && h("p", { class: "line" }, longText(found.message)));
}

/** Pods by the clique of the template, and components of the graph. */
export function roles(status) {
  const rows = (status.roles ?? []).map((role) => ({ key: role.name, cells: [name(role.name), share(role.ready, role.pods, colour(role.ready, role.pods)), `${role.updated}/${role.pods}`] }));
  return section("roles", "Roles", rows.length > 0 && simpleTable("Roles", ["Role", "Ready", "Updated"], rows, ["main", "", "number"]));
}

/** The DynamoGraphDeployment that the set belongs to. */
export function graph(status) {
  const found = status.graph;
  if (!found) return null;
  const rows = (found.components ?? []).map((each) => ({ key: each.name, cells: [name(each.name), share(each.ready, each.replicas, colour(each.ready, each.replicas)), `${each.updated}/${each.replicas}`] }));
  return section("graph", `Graph ${found.name}`,
    h("p", { class: "line" }, state(found.state), " ", found.message && longText(found.message)),
    rows.length > 0 && simpleTable("Components", ["Component", "Ready", "Updated"], rows, ["main", "", "number"]));
}

/** The gangs, those that do not run first. */
export function gangs(namespace, status, picture, all) {
  const found = status.gangs ?? [];
  const rows = found.slice(0, all.has("gangs") ? Infinity : ROWS).map((gang) => ({ key: gang.name, cells: gangCells(namespace, gang, picture) }));
  const titles = ["Gang", "Phase", "Ready", "Domains", "Score", "Constraints"];
  return section("gangs", `Gangs (${found.length})`,
    rows.length > 0 && h("div", { class: "rows-scroll", "data-key": "gangs" }, simpleTable("Gangs", titles, rows, ["main", "", "number", "wide", "number", ""])),
    showAll("gangs", rows, found));
}

function showAll(key, rows, found) {
  return rows.length < found.length && h("button", { type: "button", class: "text-button", "data-all": key }, `Show all ${found.length}`);
}

function gangCells(namespace, gang, picture) {
  const key = `${namespace}/${gang.name}`;
  const units = Object.entries(gang.domains ?? {});
  const waits = Boolean(picture?.gangs?.[key]?.waiting);
  return [
    h("a", { href: waits ? gangLink(key) : mapGangLink(key), class: "row-link" }, name(gang.name)),
    h("span", { class: "line" }, state(gang.phase), gang.unhealthy && h("span", { class: "state bad", title: gang.unhealthy }, "unhealthy")),
    `${gang.ready}/${gang.pods}`,
    units.length
      ? h("ul", { class: "chips" }, units.slice(0, 6).map(([unit, domain]) => h("li", { title: unit }, h("a", { href: mapGangLink(key) }, unit === gang.name ? domain : `${domain} (${tail(unit, gang.name)})`))), units.length > 6 && h("li", null, `and ${units.length - 6} more`))
      : h("span", { class: "muted" }, "no place yet"),
    gang.score === null || gang.score === undefined ? h("span", { class: "muted" }, "–") : gang.score.toFixed(2),
    held(gang),
  ];
}

function held(gang) {
  const word = { true: "enforced", false: "not enforced" }[String(gang.enforced)];
  return h("span", { class: "line" }, word ? h("span", { class: `state ${tone(word)}` }, word) : h("span", { class: "muted" }, "–"),
    gang.fallback !== null && gang.fallback !== undefined && h("span", { class: "muted" }, `fallback ${gang.fallback}`));
}

function tail(unit, gang) {
  return unit.startsWith(`${gang}-`) ? unit.slice(gang.length + 1) : unit;
}

/** NVLink domains, those that pods cannot use first. */
export function fabricDomains(status, all) {
  const domains = status.fabricDomains ?? [];
  const usable = (each) => each.phase === "Ready" && !each.reason;
  const found = [...domains.filter((each) => !usable(each)), ...domains.filter(usable)];
  const rows = found.slice(0, all.has("fabric") ? Infinity : ROWS).map((each) => ({
    key: each.name,
    cells: [name(each.name), state(each.phase === "Ready" && each.reason ? each.reason : each.phase), `${each.ready}/${each.nodes}`, (each.partitions ?? []).join(", ") || "–"],
  }));
  return section("fabric", `Fabric domains (${found.length})`, rows.length > 0 && simpleTable("Fabric domains", ["Domain", "State", "Nodes ready", "Partitions"], rows, ["main", "", "number", ""]), showAll("fabric", rows, found));
}

/** Errors of the operator that have not been overcome. */
export function errors(status, picture, all) {
  const found = status.errors ?? [];
  const rows = found.slice(0, all.has("errors") ? Infinity : ROWS).map((each, index) => ({
    key: `${each.code} ${each.about?.name} ${index}`,
    cells: [age(each.observedAt), h("span", { class: "reason-word" }, each.code), each.about ? aboutText(each.about, picture) : "–", longText(each.description)],
  }));
  return section("errors", "Last errors", rows.length > 0 && simpleTable("Last errors", ["Seen", "Code", "Object", "Error"], rows, ["number", "word", "word", "wide"]), showAll("errors", rows, found));
}
