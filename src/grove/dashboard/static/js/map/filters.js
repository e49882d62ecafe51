/** The filters above the map. All of them are in the link. */

import { h, replaceChildren, setText } from "../dom.js";
import { changed, go } from "../router.js";
import { chosenTopology, compareNames, findDomain } from "./tree.js";

/**
 * What can be chosen. Pure.
 * @param {import("../wire.js").Picture} picture
 * @param {URLSearchParams} query
 * @returns {{topology: string[], namespace: string[], set: string[], level: string[]}}
 */
export function choices(picture, query) {
  const sets = new Set([...Object.keys(picture.sets), ...Object.values(picture.gangs).map((gang) => gang.set)]);
  sets.delete("");
  const namespace = query.get("namespace") ?? "";
  const topology = chosenTopology(picture.topologies, query.get("topology") ?? "");
  const ofNamespace = [...sets].filter((set) => namespace === "" || set.startsWith(`${namespace}/`));
  return {
    topology: picture.topologies.map((candidate) => candidate.name),
    namespace: [...new Set([...sets].map((set) => set.split("/", 1)[0]))].sort(compareNames),
    set: ofNamespace.sort(compareNames),
    level: (topology?.levels ?? []).map((level) => level.name),
  };
}

/**
 * Which gangs the filters let through. Pure.
 * @param {import("../wire.js").Picture} picture
 * @param {URLSearchParams} query
 * @returns {((gang: string) => boolean) | null} null: all
 */
export function gangFilter(picture, query) {
  const namespace = query.get("namespace") ?? "";
  const set = query.get("set") ?? "";
  if (namespace === "" && set === "") {
    return null;
  }
  return (gang) =>
    (namespace === "" || gang.startsWith(`${namespace}/`)) && (set === "" || picture.gangs[gang]?.set === set);
}

/** What the filters select, in words; empty without a filter. Pure. */
export function filterText(query) {
  const namespace = query.get("namespace") ?? "";
  const set = query.get("set") ?? "";
  return set !== "" ? `Of ${set}` : namespace !== "" ? `Of namespace ${namespace}` : "";
}

/** What a link of the map asks for. */
export class MapLink {
  /** @param {URLSearchParams} query */
  constructor(query) {
    this.route = { name: "map", path: [], query };
  }

  /** A parameter; empty if it is not there. */
  get(name) {
    return this.route.query.get(name) ?? "";
  }

  /** Whether parameters are the same as in the link before. */
  keeps(before, names) {
    return before !== null && names.every((name) => before.get(name) === this.get(name));
  }

  /** The topology that is shown. */
  topology(picture) {
    return chosenTopology(picture.topologies, this.get("topology"));
  }

  /** The selected domain. */
  domain(root) {
    return findDomain(root, this.get("domain"));
  }

  /** Goes to this link with other parameters. */
  change(changes, options) {
    go(changed(this.route, changes), options);
  }
}

const FILTERS = [
  ["topology", "Topology", null],
  ["level", "Level", "All levels"],
  ["namespace", "Namespace", "All namespaces"],
  ["set", "Set", "All sets"],
];

/**
 * The filters.
 * @returns {{element: HTMLElement, update: (picture: import("../wire.js").Picture, route: import("../router.js").Route) => void}}
 */
export function filters() {
  let route = null;
  const change = (name, value) => {
    const others = { topology: { level: "" }, namespace: { set: "" } }[name] ?? {};
    go(changed(route, { ...others, [name]: value }));
  };
  const selects = new Map(
    FILTERS.map(([name, , all]) => [name, h("select", { id: `filter-${name}`, on: { change: (event) => change(name, event.target.value) }, dataset: { all: all ?? "" } })]),
  );
  const clear = h(
    "button",
    { type: "button", class: "button quiet", on: { click: () => go(changed(route, { namespace: "", set: "", level: "" })) } },
    "Clear filters",
  );
  // On narrow screens the filters are closed at first: see the style sheet.
  const opener = h("button", { type: "button", class: "button filters-opener", "aria-expanded": "false" }, "Filters");
  const fields = new Map(FILTERS.map(([name, label]) => [name, h("div", { class: "field" }, h("label", { for: `filter-${name}` }, label), selects.get(name))]));
  const element = h("div", { class: "filters", role: "group", "aria-label": "Filters" }, opener, [...fields.values()], clear);
  opener.addEventListener("click", () => opener.setAttribute("aria-expanded", String(element.classList.toggle("open"))));
  return {
    element,
    update(picture, present) {
      route = present;
      const options = choices(picture, route.query);
      for (const [name, select] of selects) {
        fill(select, options[name], route.query.get(name) ?? "");
      }
      fields.get("topology").hidden = options.topology.length < 2;
      fields.get("level").hidden = options.level.length < 2;
      const active = ["namespace", "set", "level"].filter((name) => route.query.get(name)).length;
      clear.hidden = active === 0;
      setText(opener, active === 0 ? "Filters" : `Filters (${active})`);
      fields.get("level").hidden ||= !picture.viewer.nodes;
    },
  };
}

/** A choice of the link that does not exist (any more) stays visible: the user can then take it back. */
function fill(select, names, value) {
  const all = select.dataset.all;
  const shown = value !== "" && !names.includes(value) ? [...names, value] : names;
  const key = JSON.stringify(shown);
  if (select.dataset.options !== key) {
    select.dataset.options = key;
    replaceChildren(
      select,
      all && h("option", { value: "" }, all),
      shown.map((name) => h("option", { value: name }, names.includes(name) ? name : `${name} (not found)`)),
    );
  }
  select.value = value === "" && all === "" ? (names[0] ?? "") : value;
}
