/** The tree of a set, for the keyboard and for screen readers too. */

import { h } from "../dom.js";
import { state } from "./parts/badges.js";
import { icon } from "./parts/icons.js";
import { mapGangLink, mapNodeLink } from "./parts/links.js";
import { show } from "./parts/morph.js";
import { openFirst, PODS, roots } from "./parts/tree_model.js";

/** More rows than this at once are not drawn: a page of them takes seconds. */
const ROWS = 800;

/**
 * @param {(object: {kind: string, name: string}) => void} openObject shows the YAML of an object
 * @returns {{element: HTMLElement, update: (set: object) => void}}
 */
export function tree(openObject) {
  const open = new Set();
  const limits = new Map();
  let nodes = [];
  let rows = [];
  let active = "";
  let onlyBad = false;

  const list = h("div", { role: "tree", class: "tree", "aria-labelledby": "part-tree" });
  const note = h("p", { class: "note" });
  const filter = h("input", { type: "checkbox" });
  const element = h("section", { class: "card part part-tree", "aria-labelledby": "part-tree" },
    h("div", { class: "part-head" }, h("h2", { id: "part-tree" }, "Pods"),
      h("div", { class: "part-tools" },
        h("label", { class: "check" }, filter, "Only not ready"),
        h("button", { type: "button", class: "text-button", "data-tree": "open" }, "Open all"),
        h("button", { type: "button", class: "text-button", "data-tree": "close" }, "Close all"))),
    list, note);

  const draw = () => {
    rows = visible(nodes, open, limits, onlyBad);
    const cut = rows.length > ROWS;
    if (!rows.some((row) => row.node.key === active)) active = rows[0]?.node.key ?? "";
    show(list, rows.slice(0, ROWS).map((row) => rowElement(row, row.node.key === active)));
    list.hidden = rows.length === 0;
    note.textContent = cut ? `Only ${ROWS} of ${rows.length} open rows are shown: close some branches.` : emptyNote(nodes, rows);
    note.hidden = !note.textContent;
  };
  const focus = (key) => {
    active = key;
    draw();
    list.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  };
  const toggle = (row, wanted = !open.has(row.node.key)) => {
    if (row.node.more) {
      limits.set(row.node.more, (limits.get(row.node.more) ?? PODS) + PODS * 4);
      active = row.node.next;
    } else if (wanted) open.add(row.node.key);
    else open.delete(row.node.key);
    draw();
    if (row.node.more) focus(row.node.next);
  };
  const rowOf = (target) => {
    const key = target.closest?.("[role=treeitem]")?.dataset.key;
    return rows.find((row) => row.node.key === key);
  };

  filter.addEventListener("change", () => {
    onlyBad = filter.checked;
    draw();
  });
  element.addEventListener("click", (event) => {
    const command = event.target.closest("[data-tree]")?.dataset.tree;
    if (command) {
      if (command === "open") openAll(nodes, open);
      else open.clear();
      draw();
      return;
    }
    const row = rowOf(event.target);
    if (!row) return;
    active = row.node.key;
    if (event.target.closest("[data-yaml]")) openObject(row.node.object);
    else if (!event.target.closest("a")) toggle(row);
  });
  list.addEventListener("keydown", (event) => {
    const row = rowOf(event.target);
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const inRow = event.target.getAttribute("role") !== "treeitem";
    if (inRow && (event.key === "Enter" || event.key === " ")) return;
    const next = move(event.key, row, rows.slice(0, ROWS), open);
    if (next?.focus) focus(next.focus);
    else if (next?.toggle !== undefined) toggle(row, next.toggle);
    else if (event.key === "Enter" && row.node.object) openObject(row.node.object);
    else if (event.key === "Enter" || event.key === " ") toggle(row);
    else return;
    event.preventDefault();
  });

  return {
    element,
    update(set) {
      nodes = roots(set);
      openFirst(nodes, open);
      draw();
    },
  };
}

/** The rows that are open, each with its level and its position among its siblings. */
function visible(nodes, open, limits, onlyBad, level = 1, parent = null) {
  const found = [];
  const shown = onlyBad ? nodes.filter((node) => !node.good) : nodes;
  shown.forEach((node, index) => {
    const row = { node, level, parent, position: index + 1, siblings: shown.length, open: open.has(node.key) };
    found.push(row);
    if (!row.open || !node.size) return;
    const children = node.children();
    const limit = node.limited ? (limits.get(node.key) ?? PODS) : Infinity;
    const wanted = children.length > limit ? [...children.slice(0, limit), moreNode(node, children, limit)] : children;
    found.push(...visible(wanted, open, limits, onlyBad, level + 1, row));
  });
  return found;
}

function moreNode(node, children, limit) {
  const left = children.length - limit;
  return { key: `more ${node.key}`, more: node.key, next: children[limit].key, kind: "more", name: `Show more: ${left} of ${children.length} are not shown`, good: false, size: 0, children: () => [] };
}

function openAll(nodes, open) {
  for (const node of nodes) {
    if (!node.size) continue;
    open.add(node.key);
    openAll(node.children(), open);
  }
}

/** What a key does to the tree. */
function move(key, row, rows, open) {
  const at = rows.indexOf(row);
  const isOpen = row.node.size > 0 && open.has(row.node.key);
  const to = (index) => (rows[index] ? { focus: rows[index].node.key } : { focus: row.node.key });
  if (key === "ArrowDown") return to(at + 1);
  if (key === "ArrowUp") return to(at - 1);
  if (key === "Home") return to(0);
  if (key === "End") return to(rows.length - 1);
  if (key === "ArrowRight" && row.node.size) return isOpen ? to(at + 1) : { toggle: true };
  if (key === "ArrowLeft") return isOpen ? { toggle: false } : row.parent && { focus: row.parent.node.key };
  return null;
}

function emptyNote(nodes, rows) {
  if (rows.length) return "";
  return nodes.length ? "All is ready." : "Nothing exists below this set yet.";
}

function rowElement(row, active) {
  const { node } = row;
  const tab = active ? "0" : "-1";
  const props = {
    role: "treeitem",
    class: `tree-row level-${Math.min(row.level, 7)} ${node.good ? "" : "not-good"}`,
    "data-key": node.key,
    "aria-level": row.level,
    "aria-posinset": row.position,
    "aria-setsize": row.siblings,
    "aria-expanded": node.size ? String(row.open) : null,
    tabindex: tab,
  };
  if (node.more) return h("div", props, h("span", { class: "twisty" }), h("span", { class: "more" }, node.name));
  return h("div", props,
    h("span", { class: "twisty" }, node.size > 0 && icon("chevron")),
    h("span", { class: "tree-main" },
      h("span", { class: "tree-kind" }, node.kind), " ",
      h("span", { class: "tree-name", title: node.name }, node.prefix && h("span", { class: "muted" }, node.prefix), node.name.slice(node.prefix?.length ?? 0)),
      node.state && [" ", state(node.state)],
      node.count && h("span", { class: "tree-count" }, ` ${node.count}`),
      (node.details ?? []).map((detail) => h("span", { class: "muted" }, ` ${detail}`)),
      node.node && [" ", h("a", { href: mapNodeLink(node.node), class: "tree-link", tabindex: tab }, node.node)],
      node.gang && [" ", h("a", { href: mapGangLink(node.gang), class: "tree-link", tabindex: tab }, "map")],
      node.why && h("span", { class: "tree-why", title: node.why }, node.why)),
    node.object && h("button", { type: "button", class: "tool-button", "data-yaml": "", tabindex: tab, "aria-label": `YAML of ${node.kind} ${node.name}`, title: "YAML" }, icon("code")));
}
