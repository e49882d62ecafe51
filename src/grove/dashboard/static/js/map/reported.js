/** The domains that gangs report, for users who may not list nodes. */

import { h, replaceChildren } from "../dom.js";
import { changed } from "../router.js";
import { swatch } from "./tooltip.js";
import { compareNames } from "./tree.js";

/** @typedef {{level: string, domain: string, gangs: {key: string, units: string[]}[]}} ReportedDomain */

/**
 * The domains in which gangs are, as their statuses say, by level. Pure.
 * @param {Object<string, import("../wire.js").GangSummary>} gangs
 * @param {import("../wire.js").TopologySummary | null} topology
 * @param {((gang: string) => boolean) | null} filter
 * @returns {{domains: ReportedDomain[], elsewhere: string[]}} elsewhere: gangs that report none
 */
export function reportedDomains(gangs, topology, filter) {
  const levels = new Map((topology?.levels ?? []).map((level, depth) => [level.label, { name: level.name, depth }]));
  const domains = new Map();
  const elsewhere = [];
  for (const key of Object.keys(gangs).sort(compareNames)) {
    if (filter !== null && !filter(key)) {
      continue;
    }
    const placed = gangs[key].placed;
    if (placed.length === 0) {
      elsewhere.push(key);
    }
    const name = key.slice(key.indexOf("/") + 1);
    for (const { unit, label, domain } of placed) {
      const id = `${label}\0${domain}`;
      const entry = domains.get(id) ?? { level: levels.get(label)?.name ?? label, depth: levels.get(label)?.depth ?? 99, domain, gangs: new Map() };
      domains.set(id, entry);
      const units = entry.gangs.get(key) ?? [];
      entry.gangs.set(key, unit === name ? units : [...units, unit]);
    }
  }
  const sorted = [...domains.values()].sort((one, other) => one.depth - other.depth || compareNames(one.domain, other.domain));
  return {
    domains: sorted.map(({ level, domain, gangs: inside }) => ({ level, domain, gangs: [...inside].map(([key, units]) => ({ key, units })) })),
    elsewhere,
  };
}

/**
 * The domains as cards.
 * @param {(gang: string) => import("../colours.js").GangLook} lookOf
 * @returns {{element: HTMLElement, update: (picture: import("../wire.js").Picture,
 *   topology: import("../wire.js").TopologySummary | null, filter: ((gang: string) => boolean) | null,
 *   route: import("../router.js").Route) => void}}
 */
export function reported(lookOf) {
  const element = h("div", { class: "reported", hidden: true });
  let shown = "";
  return {
    element,
    update(picture, topology, filter, route) {
      if (element.hidden) {
        return;
      }
      const found = reportedDomains(picture.gangs, topology, filter);
      const selected = route.query.get("gang") ?? "";
      const key = JSON.stringify([found, selected, found.domains.map((domain) => domain.gangs.map((gang) => counts(picture.gangs[gang.key])))]);
      if (key === shown) {
        return;
      }
      shown = key;
      const item = (gang, units) => gangItem(gang, units, picture.gangs[gang], lookOf(gang), route);
      const levels = [...new Set(found.domains.map((domain) => domain.level))];
      replaceChildren(
        element,
        levels.map((level) => section(level, found.domains.filter((domain) => domain.level === level), item, selected)),
        found.elsewhere.length > 0 && h("section", null, h("h2", null, "no domain reported"), h("div", { class: "domain-card card" }, h("ul", null, found.elsewhere.map((gang) => item(gang, []))))),
        found.domains.length + found.elsewhere.length === 0 && h("p", { class: "muted" }, "No gang is visible."),
      );
    },
  };
}

function section(level, domains, item, selected) {
  return h(
    "section",
    { "aria-label": level },
    h("h2", null, level),
    h("div", { class: "domain-cards" }, domains.map(({ domain, gangs }) =>
      h("div", { class: "domain-card card", dataset: { dim: String(selected !== "" && !gangs.some((gang) => gang.key === selected)) } },
        h("h3", null, domain),
        h("ul", null, gangs.map(({ key, units }) => item(key, units)))),
    )),
  );
}

function gangItem(key, units, gang, look, route) {
  const selected = route.query.get("gang") === key;
  return h(
    "li",
    null,
    h("a", { href: changed(route, { gang: selected ? "" : key }), "aria-current": selected ? "true" : null }, swatch(look), key.slice(key.indexOf("/") + 1)),
    h("span", { class: "muted" }, units.length > 0 ? units.join(", ") : counts(gang)),
  );
}

function counts(gang) {
  return `${gang.pods} ${gang.pods === 1 ? "pod" : "pods"}${gang.gpus ? `, ${gang.gpus} GPUs` : ""}`;
}
