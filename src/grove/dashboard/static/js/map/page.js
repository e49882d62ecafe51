/** The page of the map. */

import { GangLooks } from "../colours.js";
import { h, replaceChildren, setText } from "../dom.js";
import { isDark, theme } from "../theme.js";
import { legend } from "./canvas/legend.js";
import { MapView } from "./canvas/view.js";
import { Details } from "./details.js";
import { filters, filterText, gangFilter, MapLink } from "./filters.js";
import { followInput, followKeys } from "./interaction.js";
import { steppedCell, wantedCell } from "./layout.js";
import { reported } from "./reported.js";
import { noteOf, summary } from "./summary.js";
import { domainTable } from "./table.js";
import { hostSentence, tooltip } from "./tooltip.js";
import { tools } from "./tools.js";
import { domainKey, domainTree, drawnLevels, hostsOf, replaceNode } from "./tree.js";
import { selectedText, selectedUse } from "./use/gangs.js";

const HELP = "Arrow keys move between hosts, Enter selects, Escape clears. The button Table shows the same as a table.";
/** As in the style sheet: the details cover the lower half of the screen then. */
const narrow = matchMedia("(max-width: 1000px)");
const views = new WeakMap();

/** The page, as the router expects it. */
export function page(store, params) {
  return new MapPage(store, params);
}

/**
 * The view of the map of a page: where hosts are, and how long a frame takes. For tests and measurements.
 * @param {Element} element the element with the class `map-scroll`
 * @returns {{page: MapPage, view: MapView} | undefined}
 */
export function mapOf(element) {
  return views.get(element);
}

/** The page. `root` is the tree that the map shows, `scroll` the element with the map, `looks` those of gangs. */
class MapPage {
  root = domainTree({}, []);
  #store;
  #link = null;
  #hosts = new Map();
  #hostList = [];
  #target = null;
  #filters = filters();
  #tools = tools((steps) => this.#zoom(steps));
  #summary = summary();
  #legend = legend();
  #tooltip;
  #table;
  #reported;
  #details;
  #view;
  #input;
  #endKeys;
  #side = null;
  #sideSlot = h("div", { class: "side-slot" });
  #note = h("p", { class: "map-note", hidden: true });
  #spoken = h("div", { class: "visually-hidden", "aria-live": "polite" });
  #recolour = () => {
    this.#legend.update();
    this.#build();
  };

  constructor(store, params) {
    this.#store = store;
    this.looks = new GangLooks(store, isDark);
    this.#tooltip = tooltip(this.looks.of);
    this.#table = domainTable(this.looks.of);
    this.#reported = reported(this.looks.of);
    this.#details = new Details(store, this.looks.of);
    this.scroll = h("div", { class: "map-scroll", tabindex: "0", role: "application", "aria-roledescription": "map", "aria-describedby": "map-help" });
    this.#view = new MapView(this.scroll);
    views.set(this.scroll, { page: this, view: this.#view });
    this.#input = followInput(this.#view, {
      hosts: () => this.#hostList,
      hover: (target) => this.#hover(target),
      focus: (host) => this.#focus(host),
      select: (host, gang) => this.#link.change({ node: host.name, gang, domain: "" }),
      selectDomain: (domain) => this.#link.change({ node: "", gang: "", domain: domainKey(domain) }),
      clear: () => this.#clear(),
    });
    this.#endKeys = followKeys({ clear: () => this.#clear(), zoom: (steps) => this.scroll.hidden || this.#zoom(steps) });
    this.element = this.#frame();
    theme.addEventListener("change", this.#recolour);
    this.navigate(params);
    this.#loadSide(params);
    requestAnimationFrame(() => this.#legend.update());
  }

  /** Shows another link of this page. */
  navigate(params) {
    const before = this.#link;
    this.#link = new MapLink(params.query);
    if (this.#link.keeps(before, ["topology", "level", "zoom", "view"])) {
      this.#showState();
    } else {
      this.#build();
    }
    if (!this.#link.keeps(before, ["node", "gang", "domain"])) {
      this.#reveal();
    }
  }

  /** Takes a change of the store. */
  update(delta) {
    this.#side?.update(delta);
    if (delta === null || delta.topologies || delta.viewer) {
      this.#build();
      return;
    }
    const { nodes } = this.#store.picture;
    const hosts = [];
    for (const name of Object.keys(delta.nodes ?? {})) {
      const host = this.#hosts.get(name);
      if (host === undefined || nodes[name] === undefined || !replaceNode(host, nodes[name])) {
        this.#build();
        return;
      }
      hosts.push(host);
    }
    // A gang that was not known when its cells were drawn looks different now.
    if (Object.keys(delta.gangs ?? {}).some((gang) => !this.looks.has(gang))) {
      this.#view.recolour();
    } else {
      this.#view.repaint(hosts);
    }
    this.#showState();
  }

  /** Ends the page. */
  dispose() {
    theme.removeEventListener("change", this.#recolour);
    this.#endKeys();
    this.#side?.dispose();
    this.#view.dispose();
  }

  #frame() {
    const main = h(
      "section",
      { class: "map-main", "aria-label": "Map of the cluster" },
      h("h1", { class: "visually-hidden" }, "Map"),
      h("div", { class: "toolbar" }, this.#filters.element, this.#tools.element),
      this.#summary.element,
      this.#note,
      this.scroll,
      this.#table.element,
      this.#reported.element,
      this.#legend.element,
      h("p", { id: "map-help", class: "visually-hidden" }, HELP),
      this.#spoken,
    );
    const side = h("aside", { class: "map-side", "aria-label": "Selection and recent activity" }, this.#details.element, this.#sideSlot);
    return h("div", { class: "map-page" }, main, side, this.#tooltip.element);
  }

  /** Lays everything out again. */
  #build() {
    const { picture } = this.#store;
    const level = this.#link.get("level");
    const topology = this.#link.topology(picture);
    this.root = domainTree(picture.nodes, drawnLevels(topology, level), topology?.levels);
    this.#hostList = hostsOf(this.root);
    this.#hosts = new Map(this.#hostList.map((host) => [host.name, host]));
    this.#target = null;
    this.#tooltip.show(null);
    const asTable = this.#link.get("view") === "table";
    const { nodes } = picture.viewer;
    this.scroll.hidden = asTable || !nodes;
    this.#table.element.hidden = !asTable || !nodes;
    this.#reported.element.hidden = nodes;
    this.#legend.element.hidden = this.scroll.hidden;
    this.scroll.setAttribute("aria-label", `Map of ${this.#hostList.length} hosts`);
    this.#view.highlight({ hovered: null, focused: null, selected: null });
    this.#view.show({
      root: this.root,
      emphasised: level,
      cell: this.#cell(),
      lookOf: this.looks.of,
      nameOf: (gang) => gang.slice(gang.indexOf("/") + 1),
    });
    this.#input.forget();
    this.#table.show(this.root);
    this.#showState();
  }

  /** Everything that changes without another layout. */
  #showState() {
    const { picture } = this.#store;
    const filter = gangFilter(picture, this.#link.route.query);
    const of = filterText(this.#link.route.query);
    const gangs = Object.keys(picture.gangs).filter((gang) => filter === null || filter(gang)).map((gang) => picture.gangs[gang]);
    const domain = this.#link.domain(this.root);
    this.#filters.update(picture, this.#link.route);
    this.#tools.update(this.#link.route, this.#cell(), picture.viewer.nodes);
    this.#summary.element.hidden = !picture.viewer.nodes;
    this.#summary.update(this.root.totals, gangs, filter === null ? "" : `${of}: ${selectedText(selectedUse(this.root, filter))}, `);
    const note = noteOf(picture);
    this.#note.hidden = note === "";
    setText(this.#note, note);
    this.#details.update(this.#link.route, this.#link.topology(this.#store.picture)?.levels ?? [], domain);
    this.#view.highlight({ selected: this.#hosts.get(this.#link.get("node")) ?? domain });
    this.element.classList.toggle("has-selection", !this.#details.element.hidden);
    this.#light();
    this.#reported.update(picture, this.#link.topology(this.#store.picture), filter, this.#link.route);
    this.#table.update(filter, of, this.#link.route);
  }

  #light() {
    const gang = this.#target?.gang || this.#link.get("gang");
    const lit = gang === "" ? gangFilter(this.#store.picture, this.#link.route.query) : (candidate) => candidate === gang;
    this.#view.highlight({ lit, hovered: this.#target?.host ?? null });
  }

  #hover(target) {
    this.#target = target;
    this.#tooltip.show(target);
    this.#light();
  }

  #focus(host) {
    this.#view.highlight({ focused: host });
    if (host === null) {
      this.#tooltip.show(null);
      return;
    }
    setText(this.#spoken, hostSentence(host.name, host.node, this.#link.topology(this.#store.picture)?.levels ?? []));
    const bounds = this.#view.boundsOf(host);
    this.#tooltip.show({ host, gang: "", kind: "", x: bounds.right, y: bounds.top });
  }

  #clear() {
    this.#tooltip.show(null);
    this.#link.change({ node: "", gang: "", domain: "" });
  }

  #reveal() {
    const gang = this.#link.get("gang");
    const ofGang = (host) => host.node.uses.some((use) => use.gang === gang);
    const shape =
      this.#hosts.get(this.#link.get("node")) ??
      this.#link.domain(this.root) ??
      (gang === "" ? undefined : this.#hostList.find(ofGang));
    if (shape !== undefined) {
      this.#view.reveal(shape);
      if (narrow.matches) {
        this.scroll.scrollIntoView({ block: "start" });
      }
    }
  }

  #zoom(steps) {
    this.#link.change({ zoom: String(steppedCell(this.#view.cell, steps)) }, { replace: true });
  }

  #cell() {
    return wantedCell(this.#link.get("zoom"), this.#hostList.length);
  }

  async #loadSide(params) {
    try {
      const { page: make } = await import("../pages/side_column.js");
      this.#side = make(this.#store, params);
      replaceChildren(this.#sideSlot, this.#side.element);
    } catch (error) {
      console.error(error);
    }
  }
}
