/** Where boxes, hosts and cells are. Pure, and linear in the number of hosts. */

import { cellCount, MAX_COLUMNS } from "./use/cells.js";

/** Sizes of a cell that the map offers, in CSS pixels. */
export const CELL_SIZES = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 18];
/** At this size hosts have names. */
export const COMFORTABLE = 14;
/** Up to this number of hosts a map starts with comfortable cells; above, with an overview. */
const FEW_HOSTS = 150;
/** A column of hosts of a rack has at most so many before a second one begins. Fewer make wide, low racks. */
const MAX_ROWS = [20, 10, 5];

/** @typedef {{cell: number, cellWidth: number, gap: number, columns: number, nameLine: number, hostWidth: number,
 *   hostPad: number, hostGap: number, pad: number, boxGap: number, bar: number, rows: number}} Metrics */

/**
 * The size of cells that a link asks for.
 * @param {string} zoom of the link: a size, `fit` or empty
 * @param {number} hosts how many there are
 * @returns {number} 0: as large as fits
 */
export function wantedCell(zoom, hosts) {
  if (CELL_SIZES.includes(Number(zoom))) {
    return Number(zoom);
  }
  return zoom === "fit" || (zoom === "" && hosts > FEW_HOSTS) ? 0 : COMFORTABLE;
}

/** The next larger or smaller size of cells. */
export function steppedCell(cell, steps) {
  const index = CELL_SIZES.findIndex((size) => size >= cell) + steps;
  return CELL_SIZES[Math.max(0, Math.min(CELL_SIZES.length - 1, index))];
}

/**
 * Measures for a size of cells.
 * @param {number} cell
 * @param {number} gpusPerHost the most that a host has
 * @param {number} width of the map: a host is never wider
 * @param {number} rows the most hosts of a column
 * @returns {Metrics}
 */
export function metricsOf(cell, gpusPerHost, width, rows) {
  const columns = Math.max(1, Math.min(gpusPerHost, MAX_COLUMNS));
  const named = cell >= COMFORTABLE;
  const gap = cell >= 10 ? 2 : cell >= 4 ? 1 : 0;
  const hostPad = named ? 5 : cell >= 6 ? 2 : cell >= 4 ? 1 : 0;
  const inner = Math.max(columns * (cell + gap) - gap, named ? (width < 480 ? 122 : 140) : Math.min(16, 4 * cell));
  const room = Math.max(24, width - 96 - 2 * hostPad);
  const cellWidth = (Math.min(inner, room) + gap) / columns - gap;
  return {
    cell, cellWidth, gap, columns, hostPad, rows,
    nameLine: named ? 15 : 0,
    hostWidth: Math.min(inner, room) + 2 * hostPad,
    hostGap: named ? 4 : cell >= 6 ? 2 : 1,
    pad: named ? 10 : cell >= 6 ? 5 : 3,
    boxGap: named ? 10 : cell >= 6 ? 5 : 3,
    bar: Math.max(2, Math.round(cell / 3)),
  };
}

/**
 * The height of the head of a box. Small cells leave room for the names of broad domains only.
 * @param {import("./tree.js").Box} box
 * @param {Metrics} metrics
 * @returns {number}
 */
export function headerHeight(box, { cell, pad }) {
  if (box.kind === "root") {
    return 0;
  }
  if (box.kind === "partition") {
    return cell >= COMFORTABLE ? 15 : cell >= 8 ? 12 : pad;
  }
  if (cell >= 8) {
    return 22;
  }
  const narrowest = !box.boxes.some((child) => child.kind === "domain");
  const least = box.depth === 0 ? 2 : narrowest ? 5 : 3;
  return cell >= least ? (box.depth === 0 ? 17 : 13) : pad;
}

/**
 * Lays a tree out: sets x, y, w and h of its boxes and hosts.
 * @param {import("./tree.js").Box} root
 * @param {number} width
 * @param {number} cell
 * @param {number} [rows] the most hosts of a column
 * @returns {{metrics: Metrics, height: number}}
 */
export function layout(root, width, cell, rows = MAX_ROWS[0]) {
  const metrics = metricsOf(cell, mostCells(root), width, rows);
  measure(root, width, metrics);
  root.w = width;
  place(root, 0, 0);
  return { metrics, height: root.h };
}

/**
 * Lays a tree out with the largest cells with which the whole map is visible, or else with the smallest ones.
 * @param {import("./tree.js").Box} root
 * @param {number} width
 * @param {number} height
 * @returns {{metrics: Metrics, height: number}}
 */
export function fittingLayout(root, width, height) {
  let laid = null;
  for (const size of CELL_SIZES.filter((candidate) => candidate <= COMFORTABLE).reverse()) {
    // Not even the hosts alone have room.
    const host = metricsOf(size, mostCells(root), width, MAX_ROWS[0]);
    if (size > CELL_SIZES[0] && root.totals.gpus / host.columns * host.hostWidth * size > width * height) {
      continue;
    }
    for (const rows of MAX_ROWS) {
      laid = layout(root, width, size, rows);
      if (laid.height <= height) {
        return laid;
      }
    }
  }
  return laid;
}

function mostCells(box) {
  const own = box.hosts.reduce((most, host) => Math.max(most, cellCount(host.node)), 0);
  return box.boxes.reduce((most, child) => Math.max(most, mostCells(child)), own);
}

/** The height of a host. */
export function hostHeight(host, metrics) {
  const cells = cellCount(host.node);
  const rows = Math.ceil(cells / metrics.columns);
  const content = cells === 0 ? metrics.bar : rows * (metrics.cell + metrics.gap) - metrics.gap;
  return 2 * metrics.hostPad + metrics.nameLine + content;
}

/** Sizes of a box that may be `available` wide; positions within it are relative to it. */
function measure(box, available, metrics) {
  const root = box.kind === "root";
  const pad = root ? 0 : box.kind === "partition" ? Math.min(metrics.pad, 5) : metrics.pad;
  const top = headerHeight(box, metrics);
  const inner = Math.max(metrics.hostWidth, available - 2 * pad);
  let y = top;
  let widest = 0;
  if (box.hosts.length > 0) {
    const size = placeHosts(box, inner, pad, y, metrics);
    widest = size.w;
    y += size.h + (box.boxes.length > 0 ? metrics.boxGap : 0);
  }
  if (box.boxes.length > 0) {
    const size = placeBoxes(box, inner, pad, y, metrics);
    widest = Math.max(widest, size.w);
    y += size.h;
  }
  box.w = widest + 2 * pad;
  box.h = y + pad;
}

/** Hosts in columns, each filled from top to bottom, as in a rack. */
function placeHosts(box, inner, left, top, metrics) {
  const count = box.hosts.length;
  const step = metrics.hostWidth + metrics.hostGap;
  const most = Math.max(1, Math.floor((inner + metrics.hostGap) / step));
  // A box over the whole width uses it; a box among others stays narrow.
  const wanted = box.depth <= 0 ? count : Math.ceil(count / metrics.rows);
  const rows = Math.ceil(count / Math.min(most, wanted));
  let height = 0;
  let column = 0;
  let y = 0;
  box.hosts.forEach((host, index) => {
    if (index > 0 && index % rows === 0) {
      column += 1;
      y = 0;
    }
    host.x = left + column * step;
    host.y = top + y;
    host.w = metrics.hostWidth;
    host.h = hostHeight(host, metrics);
    y += host.h + metrics.hostGap;
    height = Math.max(height, y - metrics.hostGap);
  });
  return { w: (column + 1) * step - metrics.hostGap, h: height };
}

/** Boxes in rows. Those of a row have the same height. Rows that are nearly as wide as the widest one end where it does;
 * others stay narrow, because more width would be an empty column. */
function placeBoxes(box, inner, left, top, metrics) {
  for (const child of box.boxes) {
    measure(child, inner, metrics);
  }
  const rows = balancedRows(box.boxes, inner, metrics.boxGap);
  const widthOf = (row) => row.reduce((sum, child) => sum + child.w, 0) + (row.length - 1) * metrics.boxGap;
  const target = rows.reduce((most, row) => Math.max(most, widthOf(row)), 0);
  let y = top;
  let widest = 0;
  for (const row of rows) {
    const height = row.reduce((most, child) => Math.max(most, child.h), 0);
    const missing = target - widthOf(row);
    const extra = missing < metrics.hostWidth ? missing / row.length : 0;
    let x = left;
    for (const child of row) {
      child.x = x;
      child.y = y;
      child.h = height;
      child.w += extra;
      x += child.w + metrics.boxGap;
    }
    widest = Math.max(widest, x - metrics.boxGap - left);
    y += height + metrics.boxGap;
  }
  return { w: widest, h: y - metrics.boxGap - top };
}

/** As few rows as possible, of about the same number of boxes: no single box remains in a last row. */
function balancedRows(boxes, inner, gap) {
  const rows = filledRows(boxes, inner, gap);
  const widest = boxes.reduce((most, child) => Math.max(most, child.w), 0);
  const narrower = Math.ceil(boxes.length / rows.length) * (widest + gap) - gap;
  const balanced = narrower < inner ? filledRows(boxes, narrower, gap) : rows;
  return balanced.length <= rows.length ? balanced : rows;
}

function filledRows(boxes, inner, gap) {
  const rows = [];
  let room = -1;
  for (const child of boxes) {
    if (rows.length === 0 || child.w > room) {
      rows.push([]);
      room = inner;
    }
    rows[rows.length - 1].push(child);
    room -= child.w + gap;
  }
  return rows;
}

/** Relative positions become those on the map. */
function place(box, x, y) {
  for (const host of box.hosts) {
    host.x += x;
    host.y += y;
  }
  for (const child of box.boxes) {
    child.x += x;
    child.y += y;
    place(child, child.x, child.y);
  }
}
