/** Where a gang might go and what it lacks there, as the solver found it. */

import { h } from "../../dom.js";
import { longText, name, plural } from "./badges.js";
import { icon } from "./icons.js";
import { mapGangLink, mapNodeLink } from "./links.js";
import { simpleTable } from "./sections.js";

const REMEDY_ICONS = { uncordon: "uncordon", repair: "repair", removeTaint: "taint", endPods: "end", widenLevel: "widen", addNodes: "add" };
const NODES = 8;

/** The domains, those that come closest first. */
export function domainTable(gang) {
  const rows = gang.domains ?? [];
  if (!rows.length) return null;
  const titles = ["Domain", "Free of total", "Needs", "Short of", "Pods that fit", "Nodes", "Not usable"];
  const kinds = ["main domain", "", "number", "number", "number", "number", "wide"];
  return [
    h("div", { class: "rows-scroll", "data-key": "domains" },
      simpleTable("Domains that the gang might go to", titles, rows.map((row) => ({ key: row.domain, cells: cells(row) })), kinds)),
    gang.moreDomains > 0 && h("p", { class: "note" }, `and ${plural(gang.moreDomains, "more domain")} that lack more`),
  ];
}

function cells(row) {
  const { free = 0, total = 0, need = 0, room = 0, pods = 0, unusable = {}, reserved = {} } = row;
  const short = Math.max(0, need - free);
  const barred = [
    ...Object.entries(unusable).map(([why, count]) => `${count} ${why}`),
    ...Object.entries(reserved).map(([gang, count]) => `${count} held for ${gang}`),
  ];
  return [
    name(row.domain),
    capacity(free, total, need),
    `${need} ${row.resource ?? ""}`.trim(),
    short > 0 ? h("strong", { class: "short" }, String(short)) : h("span", { class: "muted" }, "0, but scattered"),
    `${room} of ${pods}`,
    h("span", { title: "nodes that the pods may use, of all" }, `${row.eligible ?? 0} of ${row.nodes ?? 0}`),
    barred.length ? h("ul", { class: "chips" }, barred.map((text) => h("li", null, text))) : h("span", { class: "muted" }, "–"),
  ];
}

/** Free of total, as a bar with a mark at what is needed. */
function capacity(free, total, need) {
  const widest = Math.max(total, need, 1);
  const fill = h("span", { class: "fill" });
  fill.style.setProperty("width", `${(free / widest) * 100}%`);
  const room = h("span", { class: "room" });
  room.style.setProperty("width", `${(total / widest) * 100}%`);
  const mark = h("span", { class: "mark" });
  mark.style.setProperty("left", `${(need / widest) * 100}%`);
  return h("span", { class: "capacity" }, h("span", { class: "number" }, `${free} of ${total}`),
    h("span", { class: "gauge", "aria-hidden": "true" }, room, fill, mark));
}

const none = () => h("span", { class: "muted" }, "–");

/** Pods that use what the gang lacks. */
export function holderTable(gang) {
  const rows = gang.holders ?? [];
  if (!rows.length) return null;
  return [
    simpleTable("Pods that use what the gang lacks", ["Pod", "Uses", "Node", "Priority", "Gang"], rows.map((each) => ({
      key: `${each.pod.namespace}/${each.pod.name}`,
      cells: [
        // Pods that the viewer may not see are one row, a count without a namespace and a node.
        h("span", null, each.pod.namespace && h("span", { class: "muted" }, `${each.pod.namespace}/`), name(each.pod.name)),
        `${each.amount} ${each.resource}`,
        each.node ? h("a", { href: mapNodeLink(each.node), class: "quiet-link" }, name(each.node)) : none(),
        String(each.priority ?? 0),
        each.gang ? h("a", { href: mapGangLink(`${each.pod.namespace}/${each.gang}`), class: "quiet-link" }, name(each.gang)) : none(),
      ],
    }))),
    gang.moreHolders > 0 && h("p", { class: "note" }, `and ${plural(gang.moreHolders, "more pod")}`),
  ];
}

/** Changes after which the gang fits, each alone. */
export function remedyList(gang) {
  const rows = gang.remedies ?? [];
  if (!rows.length) return null;
  return h("ul", { class: "remedies" }, rows.map((each) =>
    h("li", { "data-key": `${each.action} ${each.text}` }, icon(REMEDY_ICONS[each.action] ?? "other"),
      h("div", null, longText(each.text), nodeLinks(each)))));
}

/** The nodes of a remedy on the map; a node that others should be like is not one to change. */
function nodeLinks({ action, nodes = [] }) {
  if (!nodes.length || action === "addNodes") return null;
  return h("span", { class: "remedy-nodes" },
    nodes.slice(0, NODES).map((node) => h("a", { href: mapNodeLink(node) }, node)),
    nodes.length > NODES && h("span", { class: "muted" }, `and ${nodes.length - NODES} more`));
}
