/** The canvas of a map: it shows the part of the map that is scrolled to, and draws only when something changes. */

import { h } from "../../dom.js";
import { drawCells, drawHost, drawMap, drawMarks, drawNames, redrawHeader } from "../draw.js";
import { at, cellAt, eachHost } from "../geometry.js";
import { fittingLayout, headerHeight, layout } from "../layout.js";
import { hatchPattern, readInks, rounded } from "./marks.js";
import { Tiles } from "./tiles.js";

/** The view. Its owner sets the content with `show`, and what stands out with `highlight`. */
export class MapView {
  #canvas = h("canvas", { class: "map-canvas", "aria-hidden": "true" });
  #spacer = h("div", { class: "map-spacer" }, this.#canvas);
  #ctx = this.#canvas.getContext("2d");
  #scene = null;
  #tiles = new Tiles(
    (ctx, area) => drawMap(ctx, this.#scene, area),
    (ctx, shape) => (shape.node === undefined ? redrawHeader(ctx, this.#scene, shape) : drawHost(ctx, this.#scene, shape)),
  );
  #content = null;
  #size = { w: 0, h: 0, ratio: 1 };
  #frame = 0;
  #observer = new ResizeObserver(() => this.#resized());
  /** What stands out: hosts by role, and the gangs whose cells do. */
  #marked = { hovered: null, focused: null, selected: null, lit: null };

  /** @param {HTMLElement} element the element that scrolls */
  constructor(element) {
    this.element = element;
    element.append(this.#spacer);
    element.addEventListener("scroll", () => this.#schedule(), { passive: true });
    this.#observer.observe(element);
    /** How long the last frame took to draw, in milliseconds. */
    this.frameTime = 0;
    /** Called after each layout. */
    this.onLayout = () => undefined;
  }

  /** The size of cells that is shown. */
  get cell() {
    return this.#scene?.metrics.cell ?? 0;
  }

  /**
   * Shows a tree.
   * @param {{root: import("../tree.js").Box, emphasised: string, cell: number, lookOf: (gang: string) => import("../../colours.js").GangLook,
   *   nameOf: (gang: string) => string}} content cell 0: as large as fits
   */
  show(content) {
    this.#content = content;
    this.#lay();
  }

  /** Draws hosts and the boxes around them again, because they have changed. */
  repaint(hosts) {
    if (this.#scene === null) {
      return;
    }
    const boxes = new Set();
    for (const host of hosts) {
      this.#tiles.invalidate(host, host.h);
      for (let box = host.box; box !== null; box = box.parent) {
        if (box.kind === "domain") {
          boxes.add(box);
        }
      }
    }
    for (const box of boxes) {
      this.#tiles.invalidate(box, headerHeight(box, this.#scene.metrics));
    }
    this.#schedule();
  }

  /** Takes the colours of the theme again. */
  recolour() {
    if (this.#scene !== null) {
      this.#lay();
    }
  }

  /**
   * Sets what stands out.
   * @param {{hovered?: import("../tree.js").Host | null, focused?: import("../tree.js").Host | null,
   *   selected?: import("../tree.js").Host | null, lit?: ((gang: string) => boolean) | null}} marked
   */
  highlight(marked) {
    Object.assign(this.#marked, marked);
    this.#schedule();
  }

  /** What is under a point of the window: box, host and cell; title: the head of the box. */
  find(clientX, clientY) {
    const edge = this.#canvas.getBoundingClientRect();
    const x = clientX - edge.left;
    const y = clientY - edge.top + this.element.scrollTop;
    if (this.#scene === null || x < 0 || x >= this.#size.w) {
      return { box: null, host: null, cell: -1, title: false };
    }
    const found = at(this.#scene.root, x, y);
    const header = headerHeight(found.box, this.#scene.metrics);
    return { ...found, title: header >= 12 && y < found.box.y + header, cell: found.host === null ? -1 : cellAt(found.host, this.#scene.metrics, x, y) };
  }

  /** Where a host is in the window. */
  boundsOf(host) {
    const edge = this.#canvas.getBoundingClientRect();
    return new DOMRect(edge.left + host.x, edge.top + host.y - this.element.scrollTop, host.w, host.h);
  }

  /** Scrolls as little as needed to show a host. */
  reveal(host) {
    const { element } = this;
    const margin = 32;
    if (host.y - margin < element.scrollTop) {
      element.scrollTop = host.y - margin;
    } else if (host.y + host.h + margin > element.scrollTop + element.clientHeight) {
      element.scrollTop = host.y + host.h + margin - element.clientHeight;
    }
  }

  /** Ends the view. */
  dispose() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
  }

  #resized() {
    const ratio = devicePixelRatio || 1;
    const w = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (w === this.#size.w && height === this.#size.h && ratio === this.#size.ratio) {
      return;
    }
    const onlyHeight = w === this.#size.w && ratio === this.#size.ratio && this.#content?.cell !== 0;
    this.#size = { w, h: height, ratio };
    this.#canvas.width = Math.round(w * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#canvas.style.setProperty("width", `${w}px`);
    this.#canvas.style.setProperty("height", `${height}px`);
    if (onlyHeight) {
      this.#schedule();
    } else {
      this.#lay();
    }
  }

  #lay() {
    const { w, h: height, ratio } = this.#size;
    if (this.#content === null || w === 0 || height === 0) {
      return;
    }
    const { root, cell } = this.#content;
    const laid = cell === 0 ? fittingLayout(root, w, height) : layout(root, w, cell);
    const inks = readInks(this.element);
    this.#scene = { ...this.#content, metrics: laid.metrics, inks, hatch: hatchPattern(this.#ctx, inks, ratio) };
    this.#spacer.style.setProperty("height", `${Math.max(Math.ceil(laid.height), height)}px`);
    this.#tiles.reset(w, ratio);
    this.onLayout();
    this.#schedule();
  }

  #schedule() {
    if (this.#frame === 0) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#draw();
      });
    }
  }

  #draw() {
    if (this.#scene === null || this.#size.w === 0) {
      return;
    }
    const start = performance.now();
    const ctx = this.#ctx;
    const { h: height, ratio } = this.#size;
    const top = Math.round(this.element.scrollTop * ratio) / ratio;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    this.#tiles.show(ctx, top, height);
    ctx.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    this.#drawLit(ctx, top, height);
    this.#drawOutlines(ctx);
    // Clocks of browsers are coarse: a frame that was drawn never took no time.
    this.frameTime = Math.max(0.01, performance.now() - start);
  }

  /** Dims everything, and draws the cells of the gangs that stand out on top of it. */
  #drawLit(ctx, top, height) {
    const { lit } = this.#marked;
    if (lit === null) {
      return;
    }
    const scene = this.#scene;
    eachHost(scene.root, top, top + height, (host) => {
      ctx.fillStyle = scene.inks.veil;
      ctx.fillRect(host.x, host.y, host.w, host.h);
      if (host.node.uses.some((use) => use.gang !== "" && lit(use.gang))) {
        drawNames(ctx, scene, host);
        drawCells(ctx, scene, host, lit);
        drawMarks(ctx, scene, host);
      }
    });
  }

  #drawOutlines(ctx) {
    const { hovered, focused, selected } = this.#marked;
    const { inks, metrics } = this.#scene;
    const radius = metrics.cell >= 10 ? 5 : 2;
    for (const [host, colour, width] of [[hovered, inks.muted, 1.5], [selected, inks.selected, 2], [focused, inks.focus, 2]]) {
      if (host !== null) {
        const out = width / 2 + (host === focused && host === selected ? 2 : 0.5);
        ctx.strokeStyle = colour;
        ctx.lineWidth = width;
        rounded(ctx, host.x - out, host.y - out, host.w + 2 * out, host.h + 2 * out, radius);
        ctx.stroke();
      }
    }
  }
}
