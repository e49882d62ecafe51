/** The domains of a topology as a tree, with their hosts. Pure. */

import { add, nodeTotals, noTotals } from "./use/totals.js";

/** @typedef {import("./use/totals.js").Totals} Totals */
/** @typedef {{name: string, node: import("../wire.js").NodeCells, box: Box | null, x: number, y: number, w: number,
 *   h: number}} Host */
/** @typedef {{kind: "root" | "domain" | "partition", name: string, partition: string, level: string, missing: boolean, depth: number,
 *   parent: Box | null, boxes: Box[], hosts: Host[], totals: Totals, x: number, y: number, w: number, h: number}} Box */

/** Names with numbers of the same length: thousands of them sort much faster by these keys than by a collator. */
function sortKey(name) {
  return name.replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}

/** Compares names as people do: `rack-2` comes before `rack-10`. */
export function compareNames(one, other) {
  const [left, right] = [sortKey(one), sortKey(other)];
  return left < right ? -1 : left > right ? 1 : one < other ? -1 : one > other ? 1 : 0;
}

/**
 * The topology that is shown: the one of that name, or the first.
 * @param {import("../wire.js").TopologySummary[]} topologies
 * @param {string} name
 * @returns {import("../wire.js").TopologySummary | null}
 */
export function chosenTopology(topologies, name) {
  return topologies.find((topology) => topology.name === name) ?? topologies[0] ?? null;
}

/**
 * The levels whose domains are drawn: down to the one of that name, or all.
 * @param {import("../wire.js").TopologySummary | null} topology
 * @param {string} level
 * @returns {{name: string, label: string}[]}
 */
export function drawnLevels(topology, level) {
  const levels = topology?.levels ?? [];
  const last = levels.findIndex((candidate) => candidate.name === level);
  return last < 0 ? levels : levels.slice(0, last + 1);
}

/** Hosts in the order of their domains of all levels, drawn or not, then of their names. */
function orderedHosts(nodes, levels) {
  const keys = new Map();
  const keyOf = (name) => {
    const known = keys.get(name);
    const key = known ?? sortKey(name);
    if (known === undefined) {
      keys.set(name, key);
    }
    return key;
  };
  return Object.keys(nodes)
    .map((name) => [[...levels.map(({ label }) => keyOf(nodes[name].domains[label] ?? "")), sortKey(name), name].join("\0"), name])
    .sort((one, other) => (one[0] < other[0] ? -1 : 1))
    .map(([, name]) => name);
}

/**
 * The tree of domains. Hosts without the label of a level are in a box "no <level>"; if they have no label of any
 * narrower level either, that box is the last one. Without levels there is one box.
 * @param {Object<string, import("../wire.js").NodeCells>} nodes
 * @param {{name: string, label: string}[]} levels from broad to narrow
 * @param {{name: string, label: string}[]} [all] levels, also those that are not drawn: hosts are in their order
 * @returns {Box} the root
 */
export function domainTree(nodes, levels, all = levels) {
  const root = newBox("root", "", "", -1, null);
  const index = new Map([[root, new Map()]]);
  for (const name of orderedHosts(nodes, all)) {
    const node = nodes[name];
    const path = levels.map((level) => node.domains[level.label] ?? "");
    const last = path.findLastIndex((domain) => domain !== "");
    let box = levels.length === 0 ? child(index, root, "all hosts", "") : root;
    for (let depth = 0; depth < Math.min(levels.length, last + 2); depth += 1) {
      box = child(index, box, path[depth], levels[depth].name);
    }
    addHost(index, box, name, node);
  }
  finish(root);
  return root;
}

/**
 * Puts the new state of a node into the tree.
 * @param {Host} host
 * @param {import("../wire.js").NodeCells} node
 * @returns {boolean} false if its place in the tree may be another one now: then the tree must be built again
 */
export function replaceNode(host, node) {
  const before = host.node;
  if (before.gpus !== node.gpus || before.partition !== node.partition || !sameDomains(before.domains, node.domains)) {
    return false;
  }
  const old = nodeTotals(before);
  const now = nodeTotals(node);
  host.node = node;
  for (let box = host.box; box !== null; box = box.parent) {
    for (const key of Object.keys(now)) {
      box.totals[key] += now[key] - old[key];
    }
  }
  return true;
}

/** All hosts, in the order of the tree. */
export function hostsOf(box, found = []) {
  for (const host of box.hosts) {
    found.push(host);
  }
  for (const child of box.boxes) {
    hostsOf(child, found);
  }
  return found;
}

/**
 * The name of a domain in a link: its level, and the names from the broadest domain around it to its own.
 * @param {Box} box
 * @returns {string} empty: the box cannot be selected
 */
export function domainKey(box) {
  return box.kind !== "domain" || box.missing || box.level === "" ? "" : [box.level, ...pathOf(box)].join("/");
}

/**
 * A domain by its key, which may be without the level and without domains around it: `rack/z0/b0/r1`, `rack/r1`, `r1`.
 * @param {Box} box
 * @param {string} key
 * @returns {Box | null}
 */
export function findDomain(box, key) {
  const wanted = key.split("/").filter(Boolean);
  const visit = (candidate) => (wanted.length > 0 && matches(candidate, wanted) ? candidate : firstOf(candidate.boxes, visit));
  return visit(box);
}

function matches(box, wanted) {
  if (domainKey(box) === "" || box.name !== wanted[wanted.length - 1]) {
    return false;
  }
  const ends = (names) => names.every((name, index) => name === path[path.length - names.length + index]);
  const path = pathOf(box);
  return ends(wanted) || (wanted.length > 1 && wanted[0] === box.level && ends(wanted.slice(1)));
}

function pathOf(box) {
  return box.kind === "root" ? [] : [...pathOf(box.parent), box.name];
}

function firstOf(boxes, visit) {
  for (const box of boxes) {
    const found = visit(box);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/** The name of a box for people. */
export function boxTitle(box) {
  return box.missing ? `no ${box.level}` : box.name;
}

function sameDomains(one, other) {
  const labels = Object.keys(one);
  return labels.length === Object.keys(other).length && labels.every((label) => one[label] === other[label]);
}

function child(index, parent, name, level) {
  const children = index.get(parent);
  let box = children.get(name);
  if (box === undefined) {
    box = newBox("domain", name, level, parent.depth + 1, parent);
    box.missing = name === "";
    children.set(name, box);
    index.set(box, new Map());
    parent.boxes.push(box);
  }
  return box;
}

/** The NVLink partition of a host is a box within its domain: partitions are then areas, without overlap. */
function addHost(index, domain, name, node) {
  let box = domain;
  if (node.partition !== "") {
    const key = `\0${node.partition}`;
    const children = index.get(domain);
    box = children.get(key);
    if (box === undefined) {
      box = newBox("partition", node.partition, "NVLink partition", domain.depth + 1, domain);
      children.set(key, box);
      domain.boxes.push(box);
    }
  }
  box.hosts.push({ name, node, box, x: 0, y: 0, w: 0, h: 0 });
}

function finish(box) {
  const only = box.boxes.length === 1 && box.hosts.length === 0 ? box.boxes[0] : null;
  if (box.kind === "domain" && only?.kind === "partition") {
    // The whole domain is one partition: it needs no second frame.
    box.partition = only.name;
    box.hosts = only.hosts;
    box.boxes = [];
    box.hosts.forEach((host) => (host.box = box));
  }
  // Partitions stay in the order of their hosts: their names are identifiers without a meaning.
  box.boxes.sort(
    (one, other) =>
      Number(one.missing) - Number(other.missing) ||
      (one.kind === "partition" && other.kind === "partition" ? 0 : compareNames(one.name, other.name)),
  );
  for (const inner of box.boxes) {
    finish(inner);
    add(box.totals, inner.totals);
  }
  for (const host of box.hosts) {
    add(box.totals, nodeTotals(host.node));
  }
}

function newBox(kind, name, level, depth, parent) {
  return {
    kind, name, level, partition: kind === "partition" ? name : "", missing: false, depth, parent, boxes: [], hosts: [],
    totals: noTotals(), x: 0, y: 0, w: 0, h: 0,
  };
}
