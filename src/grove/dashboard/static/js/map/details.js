/** The panel beside the map: the selected host and the selected gang. */

import { get } from "../api.js";
import { h, replaceChildren } from "../dom.js";
import { changed, go, link } from "../router.js";
import { age } from "../time.js";
import { gpuSentence, hostStates, swatch } from "./tooltip.js";
import { gangLines, gpuCount } from "./use/cells.js";
import { gangsOf } from "./use/gangs.js";
import { gpuText, hostsText } from "./use/totals.js";

/** A node that changes often is not read more often than this, in milliseconds. */
const READ_INTERVAL = 2000;

/** The panel. */
export class Details {
  #store;
  #lookOf;
  #pods = { node: "", at: 0, read: null, problem: "" };
  #shown = "";

  /**
   * @param {import("../store.js").Store} store
   * @param {(gang: string) => import("../colours.js").GangLook} lookOf
   */
  constructor(store, lookOf) {
    this.#store = store;
    this.#lookOf = lookOf;
    this.element = h("section", { class: "details card", "aria-label": "Selection", hidden: true });
  }

  /**
   * Shows the selection of a link.
   * @param {import("../router.js").Route} route
   * @param {{name: string, label: string}[]} levels
   * @param {import("./tree.js").Box | null} domain the selected one
   */
  update(route, levels, domain) {
    const node = route.query.get("node") ?? "";
    const gang = route.query.get("gang") ?? "";
    this.element.hidden = node === "" && gang === "" && domain === null;
    if (this.element.hidden) {
      this.#shown = "";
      replaceChildren(this.element);
      return;
    }
    if (node !== "") {
      this.#readPods(node, () => this.update(route, levels, domain));
    }
    // The panel holds links with the focus: it is only built again if it says something else.
    const minute = Math.floor(this.#store.now() / 60_000);
    const { nodes, gangs } = this.#store.picture;
    const key = JSON.stringify([node, gang, nodes[node], gangs[gang], this.#pods.read, this.#pods.problem, levels, domain?.name, domain?.totals, minute]);
    if (key !== this.#shown) {
      this.#shown = key;
      replaceChildren(this.element, closeButton(route), domain && this.#domain(domain, route), node && this.#host(node, route, levels), gang && this.#gang(gang, route));
    }
  }

  #domain(domain, route) {
    const gangs = [...gangsOf(domain)].map(([gang, { used, reserved, later }]) => ({
      gang,
      text: [used.pods > 0 && counts(used), reserved.pods > 0 && `${counts(reserved)} reserved`, later > 0 && `${gpuCount(later)} more when free`].filter(Boolean).join("; "),
    }));
    return h(
      "div",
      { class: "details-domain" },
      h("p", { class: "details-kind" }, domain.level),
      h("h2", null, domain.name),
      factList([["Hosts", hostsText(domain.totals)], ["GPUs", gpuText(domain.totals)]]),
      this.#uses(gangs.slice(0, 50), route, "Gangs in this domain"),
    );
  }

  #host(name, route, levels) {
    const node = this.#store.picture.nodes[name];
    if (node === undefined) {
      return h("div", null, h("h2", null, name), h("p", { class: "muted" }, "This host is not in the picture: it was removed, or you may not list nodes."));
    }
    const rows = levels.map((level) => [level.name, node.domains[level.label] || "none"]);
    if (node.partition) {
      rows.push(["NVLink partition", node.partition]);
    }
    rows.push(["GPUs", gpuSentence(node)]);
    return h(
      "div",
      { class: "details-host" },
      h("p", { class: "details-kind" }, "Host"),
      h("h2", null, name),
      hostStates(node).map(([kind, text]) => h("p", { class: `tag state-${kind}` }, text)),
      factList(rows),
      this.#uses(gangLines(node), route, "Gangs on this host"),
      this.#podList(),
    );
  }

  #uses(uses, route, label) {
    if (uses.length === 0) {
      return null;
    }
    return h(
      "ul",
      { class: "details-uses", "aria-label": label },
      uses.map((use) =>
        h(
          "li",
          null,
          h("a", { href: changed(route, { gang: use.gang }) }, swatch(this.#lookOf(use.gang)), use.gang),
          h("span", { class: "muted" }, use.text),
        ),
      ),
    );
  }

  #podList() {
    const { read, problem } = this.#pods;
    if (problem) {
      return h("p", { class: "form-error" }, `Pods could not be read: ${problem}`);
    }
    if (read === null) {
      return h("p", { class: "muted" }, "Reading its pods");
    }
    const pods = read.pods ?? [];
    const others = read.others ?? {};
    return h(
      "div",
      { class: "details-pods" },
      h("h3", null, pods.length === 1 ? "1 pod" : `${pods.length} pods`),
      h("ul", null, pods.slice(0, 100).map((pod) =>
        h("li", null, h("span", { class: "pod-name" }, `${pod.namespace}/${pod.name}`), h("span", { class: "muted" }, [pod.gpus ? gpuCount(pod.gpus) : "", pod.reserved ? "reserved" : ""].filter(Boolean).join(", "))),
      )),
      pods.length > 100 && h("p", { class: "muted" }, `and ${pods.length - 100} more`),
      others.pods > 0 && h("p", { class: "muted" }, `${others.pods} other ${others.pods === 1 ? "pod" : "pods"}${others.gpus ? ` with ${gpuCount(others.gpus)}` : ""}`),
    );
  }

  #gang(key, route) {
    const gang = this.#store.picture.gangs[key];
    const [namespace, ...rest] = key.split("/");
    const name = rest.join("/");
    if (gang === undefined) {
      return h("div", { class: "details-gang" }, h("h2", null, name || key), h("p", { class: "muted" }, "This gang is not in the picture: it has ended, or you may not see its namespace."));
    }
    const [setNamespace, setName] = gang.set.split("/");
    const rows = [["Namespace", namespace], ["Phase", gang.phase || "unknown"], ["Pods", `${gang.ready} of ${gang.pods} ready`], ["GPUs", String(gang.gpus)]];
    if (gang.score !== null) {
      rows.push(["Placement score", gang.score.toFixed(3)]);
    }
    rows.push(...gang.placed.map((unit) => [unit.unit === name ? "Domain" : unit.unit, unit.domain]));
    rows.push(["Age", age(gang.created, this.#store.now())]);
    return h(
      "div",
      { class: "details-gang" },
      h("p", { class: "details-kind" }, "Gang"),
      h("h2", null, swatch(this.#lookOf(key)), name),
      gang.waiting && h("p", { class: "tag state-waiting" }, h("a", { href: link(["waiting", namespace, name]) }, `waits: ${gang.waiting.message}`)),
      factList(rows),
      h("p", { class: "details-links" },
        setName && h("a", { href: link(["workloads", setNamespace, setName]) }, `Workload ${setName}`),
        route.query.get("node") && h("a", { href: changed(route, { gang: "" }) }, "Show all gangs"),
      ),
    );
  }

  async #readPods(node, done) {
    const pods = this.#pods;
    const fresh = pods.node === node && Date.now() - pods.at < READ_INTERVAL;
    if (fresh || !this.#store.picture.viewer.nodes || this.#store.picture.nodes[node] === undefined) {
      return;
    }
    this.#pods = { node, at: Date.now(), read: pods.node === node ? pods.read : null, problem: "" };
    const mine = this.#pods;
    try {
      mine.read = await get("/api/node", { name: node });
    } catch (error) {
      mine.problem = error.message;
    }
    if (mine === this.#pods) {
      done();
    }
  }
}

function closeButton(route) {
  return h("button", { type: "button", class: "button icon-button details-close", "aria-label": "Clear the selection", on: { click: () => go(changed(route, { node: "", gang: "", domain: "" })) } }, "×");
}

function factList(rows) {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

function counts(use) {
  return [use.gpus ? gpuCount(use.gpus) : "", `${use.pods} ${use.pods === 1 ? "pod" : "pods"}`].filter(Boolean).join(", ");
}
