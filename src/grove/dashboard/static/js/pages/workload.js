/** The page of one set: whether it is healthy and why not, its tree, its time line, and the YAML of its objects. */

import { h } from "../dom.js";
import { link } from "../router.js";
import { age, countUp } from "./parts/ages.js";
import { banner, name, state, verdict } from "./parts/badges.js";
import { icon } from "./parts/icons.js";
import { rememberInAddress, splitKey } from "./parts/links.js";
import { show } from "./parts/morph.js";
import { Reading } from "./parts/reading.js";
import { repaint } from "./parts/repaint.js";
import { breadcrumb, containers, failure, reasons, section, unreadNote } from "./parts/sections.js";
import { constraints, errors, fabricDomains, facts, gangs, graph, roles, rollout } from "./parts/set_sections.js";
import { timeline } from "./timeline.js";
import { tree } from "./tree.js";
import { yamlDialog } from "./yaml.js";

/**
 * @param {import("../store.js").Store} store
 * @param {{path: string[], query: URLSearchParams}} params the path is a namespace and the name of a set
 */
export function page(store, params) {
  const [namespace, own] = params.path.slice(-2);
  const key = `${namespace}/${own}`;
  const route = ["workloads", namespace, own];
  const dialog = yamlDialog(() => rememberInAddress(route, {}));
  const openObject = ({ kind, name: object }) => {
    rememberInAddress(route, { object: `${kind}/${object}` });
    dialog.open(namespace, kind, object);
  };
  const parts = layout(tree(openObject), timeline(store), dialog);
  const view = { all: new Set(), wasThere: Boolean(store.picture?.sets?.[key]) };
  const paint = repaint(() => draw(store, key, reading, parts, view));
  const reading = new Reading("/api/workload", { namespace, name: own }, () => {
    if (reading.data && !reading.problem) {
      parts.tree.update(reading.data.set);
      parts.timeline.update(reading.data.timeline, reading.data.leftOut);
    }
    paint.now();
  });
  reading.retryOnClick(parts.element);

  parts.element.addEventListener("click", (event) => {
    const object = event.target.closest("[data-object]")?.dataset.object;
    if (object) openObject(objectOf(object));
    const list = event.target.closest("[data-all]")?.dataset.all;
    if (list) {
      view.all.add(list);
      paint.now();
    }
  });
  const stop = countUp(parts.element, store);
  paint.now();
  // The dialog can open only when it is in the document, which is after this function.
  const openAsked = (query) => {
    const asked = query.get("object");
    if (asked?.includes("/") && parts.element.isConnected) openObject(objectOf(asked));
  };
  requestAnimationFrame(() => openAsked(params.query));
  return {
    element: parts.element,
    navigate: (asked) => openAsked(asked.query),
    update(delta) {
      const found = store.picture?.sets?.[key];
      if (found) view.wasThere = true;
      const deleted = !found && view.wasThere;
      if (!deleted && (delta === null || Object.hasOwn(delta.sets ?? {}, key))) reading.again();
      paint.request();
    },
    dispose() {
      stop();
      paint.cancel();
      reading.dispose();
      dialog.dispose();
    },
  };
}

/** The places that the parts of the page are in; they stay, and their content changes. */
function layout(treePart, timelinePart, dialog) {
  const slot = (kind) => h("div", { class: `slot ${kind}` });
  const slots = { head: slot("head"), first: slot("first"), rest: slot("rest"), side: slot("side") };
  const grid = h("div", { class: "workload-grid" },
    h("div", { class: "workload-main" }, slots.first, treePart.element, slots.rest),
    h("div", { class: "workload-side" }, slots.side, timelinePart.element));
  const element = h("article", { class: "page detail workload" }, slots.head, grid, dialog.element);
  return { element, grid, slots, tree: treePart, timeline: timelinePart };
}

function draw(store, key, reading, { element, grid, slots }, view) {
  const [namespace, own] = splitKey(key);
  const summary = store.picture?.sets?.[key];
  const { set, status, containers: found, unread } = reading.data ?? {};
  const deleted = !summary && view.wasThere;
  element.classList.toggle("last-seen", deleted);
  show(slots.head,
    breadcrumb(["Workloads", link("workloads")], [namespace, link("workloads", { namespace })], [own]),
    head(key, summary, set, status, deleted),
    notes(summary, reading, view),
    unreadNote(unread),
    status && facts(set, status),
    !reading.data && !reading.problem && loading());
  grid.hidden = !reading.data;
  if (!status) return;
  show(slots.first,
    section("reasons", "Why it waits", reasons(status.waitsFor, store.picture)),
    errors(status, store.picture, view.all),
    section("containers", "Containers that wait or failed", containers(found)));
  show(slots.rest, gangs(namespace, status, store.picture, view.all), fabricDomains(status, view.all));
  show(slots.side, rollout(status), constraints(status), graph(status), roles(status));
}

/** What it says is of the same answer as the numbers below it, and before that comes of the picture. */
function head(key, summary, set, status, deleted) {
  const own = splitKey(key)[1];
  const text = status?.summary ?? summary?.summary;
  const created = set?.created || summary?.created;
  const owner = summary?.graph || status?.graph?.name;
  const yaml = (object, title) => h("button", { type: "button", class: "button", "data-object": object }, icon("code"), title);
  return h("header", { class: "detail-head", "data-key": "head" },
    h("div", null,
      h("div", { class: "detail-title" }, h("h1", null, own), deleted ? state("deleted") : (summary || status) && verdict((status ?? summary).verdict)),
      h("p", { class: "subtitle" }, deleted && text && "last seen: ", text, created && h("span", null, text && " · ", "created ", age(created, "ago")),
        owner && h("span", null, " · graph ", name(owner)))),
    h("div", { class: "actions" },
      h("a", { class: "button", href: link("map", { set: key }) }, "Show on map"),
      yaml(`podcliqueset/${own}`, "YAML"), owner && yaml(`dynamographdeployment/${owner}`, "Graph YAML")));
}

function notes(summary, reading, view) {
  if (!summary && view.wasThere) return banner("warn", "This set was deleted. The page shows what was known before.", h("a", { href: link("workloads") }, "All workloads"));
  if (reading.gone && !reading.data) return banner("warn", "There is no such set, or you may not see it.", h("a", { href: link("workloads") }, "All workloads"));
  if (reading.problem) return failure(reading.problem);
  return null;
}

function loading() {
  return h("div", { class: "card part skeleton", role: "status", "data-key": "loading" }, h("p", { class: "muted" }, "Reading the set and everything below it…"),
    h("div", { class: "skeleton-line" }), h("div", { class: "skeleton-line" }), h("div", { class: "skeleton-line" }));
}

function objectOf(text) {
  const at = text.indexOf("/");
  return { kind: text.slice(0, at), name: text.slice(at + 1) };
}
