/** The content of the map as a table. */

import { h, replaceChildren, setText } from "../dom.js";
import { changed } from "../router.js";
import { gpuSentence, hostStates, swatch } from "./tooltip.js";
import { boxTitle, compareNames, domainKey, hostsOf } from "./tree.js";
import { gangLines } from "./use/cells.js";
import { gangsOf, selectedUse } from "./use/gangs.js";
import { hostsText } from "./use/totals.js";

const COUNTS = [["gpus", "GPUs"], ["used", "Used"], ["reserved", "Reserved"], ["foreign", "Foreign"], ["free", "Free"], ["blocked", "Blocked"]];
/** More gangs than this are counted instead of listed. */
const MAX_GANGS = 12;

/** @typedef {{box: import("./tree.js").Box, row: HTMLElement, cells: Map<string, HTMLElement>, gangs: HTMLElement,
 *   hosts: HTMLElement[] | null}} Row */

/**
 * The rows of a tree: its domains, from broad to narrow; one row for everything if there is no topology. Pure.
 * @param {import("./tree.js").Box} root
 * @returns {import("./tree.js").Box[]}
 */
export function domainRows(root) {
  const rows = [];
  const visit = (box) => {
    for (const child of box.boxes.filter((candidate) => candidate.kind === "domain")) {
      rows.push(child);
      visit(child);
    }
  };
  visit(root);
  return rows.length > 0 ? rows : [root];
}

/**
 * The table.
 * @param {(gang: string) => import("../colours.js").GangLook} lookOf
 * @returns {{element: HTMLElement, show: (root: import("./tree.js").Box) => void,
 *   update: (filter: ((gang: string) => boolean) | null, of: string, route: import("../router.js").Route) => void}}
 *   of: what the filter selects, in words
 */
export function domainTable(lookOf) {
  const body = h("tbody");
  const selected = h("th", { scope: "col", hidden: true });
  const element = h(
    "div",
    { class: "table-scroll", role: "region", "aria-label": "Domains", tabindex: "0" },
    h(
      "table",
      { class: "table domain-table" },
      h("caption", { class: "visually-hidden" }, "Domains of the topology, their hosts, GPUs and gangs"),
      h("thead", null, h("tr", null,
        ["Domain", "Level", "Hosts"].map((title) => h("th", { scope: "col" }, title)),
        COUNTS.map(([, title]) => h("th", { scope: "col", class: "number" }, title)),
        selected,
        h("th", { scope: "col" }, "Gangs"))),
      body,
    ),
  );
  let boxes = [];
  let rows = null;
  let last = { filter: null, of: "", route: null };
  const expanded = new Set();

  let scheduled = false;

  const toggle = (row) => {
    const key = keyOf(row.box);
    if (!expanded.delete(key)) {
      expanded.add(key);
    }
    showHosts(row, expanded.has(key), last);
  };
  const render = () => {
    scheduled = false;
    if (rows === null) {
      rows = boxes.map((box) => newRow(box, toggle));
      replaceChildren(body, rows.map((row) => row.row));
    }
    selected.hidden = last.filter === null;
    setText(selected, last.of);
    for (const row of rows) {
      updateRow(row, last, lookOf);
      showHosts(row, expanded.has(keyOf(row.box)), last);
    }
  };
  return {
    element,
    show(root) {
      boxes = domainRows(root);
      rows = null;
    },
    update(filter, of, route) {
      last = { filter, of, route };
      if (!element.hidden && !scheduled) {
        // Many changes between two frames are shown once.
        scheduled = true;
        requestAnimationFrame(render);
      }
    },
  };
}

function newRow(box, toggle) {
  const title = box.kind === "root" ? "all hosts" : boxTitle(box);
  const cells = new Map(["hosts", ...COUNTS.map(([name]) => name)].map((name) => [name, h("td", { class: name === "hosts" ? null : "number" })]));
  const gangs = h("td", { class: "gang-cell" });
  const selected = h("td", { hidden: true });
  const leaf = !box.boxes.some((child) => child.kind === "domain");
  const name = domainKey(box) === "" ? null : h("a", null, title);
  const row = { box, cells, gangs, selected, name, hosts: null, row: null, button: null };
  row.button = leaf && h("button", { type: "button", class: "expander", "aria-expanded": "false", "aria-label": `Hosts of ${title}`, on: { click: () => toggle(row) } }, "›");
  row.row = h(
    "tr",
    { class: `depth-${Math.max(0, Math.min(box.depth, 5))}` },
    h("th", { scope: "row" }, row.button, name ?? title),
    h("td", { class: "muted" }, box.level),
    [...cells.values()],
    selected,
    gangs,
  );
  return row;
}

function updateRow(row, { filter, route }, lookOf) {
  const { totals } = row.box;
  row.name?.setAttribute("href", changed(route, { domain: domainKey(row.box), node: "", gang: "" }));
  row.selected.hidden = filter === null;
  setText(row.selected, filter === null ? "" : selectedShort(selectedUse(row.box, filter)));
  setText(row.cells.get("hosts"), hostsText(totals).replace(/ hosts?/, ""));
  for (const [name] of COUNTS) {
    setText(row.cells.get(name), totals[name].toLocaleString("en"));
  }
  const gangs = [...gangsOf(row.box).keys()].filter((gang) => filter === null || filter(gang)).sort(compareNames);
  const chosen = route.query.get("gang");
  const key = `${gangs.join(" ")} ${gangs.map((gang) => lookOf(gang).colour)} ${route.query}`;
  if (row.gangs.dataset.shown !== key) {
    row.gangs.dataset.shown = key;
    replaceChildren(
      row.gangs,
      gangs.slice(0, MAX_GANGS).map((gang) => h("a", { class: "gang-link", href: changed(route, { gang, domain: "" }), "aria-current": gang === chosen ? "true" : null }, swatch(lookOf(gang)), gang)),
      gangs.length > MAX_GANGS && h("span", { class: "muted" }, `and ${gangs.length - MAX_GANGS} more`),
    );
  }
}

function selectedShort({ gpus, reserved, hosts }) {
  const parts = [hosts > 0 && `${gpus.toLocaleString("en")} in ${hosts.toLocaleString("en")} ${hosts === 1 ? "host" : "hosts"}`, reserved > 0 && `${reserved.toLocaleString("en")} reserved`];
  return parts.filter(Boolean).join(", ") || "none";
}

function showHosts(row, shown, { filter, route }) {
  if (!row.button || (!shown && row.hosts === null)) {
    return;
  }
  row.button.setAttribute("aria-expanded", String(shown));
  const hosts = shown ? hostsOf(row.box) : [];
  const key = JSON.stringify([String(route.query), hosts.map((host) => [host.name, hostText(host.node, filter)])]);
  if (row.hosts?.key === key) {
    return;
  }
  row.hosts?.elements.forEach((element) => element.remove());
  const elements = hosts.map((host) =>
    h("tr", { class: "host-row" },
      h("th", { scope: "row" }, h("a", { href: changed(route, { node: host.name, gang: "", domain: "" }) }, host.name)),
      h("td", { class: "muted" }, "host"),
      h("td", { colspan: String(2 + COUNTS.length + Number(filter !== null)) }, hostText(host.node, filter))),
  );
  row.row.after(...elements);
  row.hosts = shown ? { key, elements } : null;
}

function hostText(node, filter) {
  const gangs = gangLines(node).filter(({ gang }) => filter === null || filter(gang)).map(({ gang, text }) => `${gang} (${text})`);
  return [gpuSentence(node), gangs.length ? `gangs ${gangs.join(", ")}` : "", ...hostStates(node).map(([, text]) => text)].filter(Boolean).join("; ");
}

function keyOf(box) {
  return box.parent === null ? box.name : `${keyOf(box.parent)}/${box.name}`;
}
