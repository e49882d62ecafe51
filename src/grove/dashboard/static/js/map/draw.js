/** Draws boxes and hosts of a map that has been laid out. */

import { corner, cross, foreignCell, freeCell, gangCell, laterBar, reservedCell, rounded, stripes } from "./canvas/marks.js";
import { drawText, fitted, fittedEnd } from "./canvas/text.js";
import { headerHeight } from "./layout.js";
import { boxTitle } from "./tree.js";
import { cellCount, cellRuns, hostUse, mainGangs } from "./use/cells.js";
import { inUse } from "./use/totals.js";

const FONT = "system-ui, sans-serif";

/**
 * @typedef {Object} Scene everything that a map shows
 * @property {import("./tree.js").Box} root
 * @property {import("./layout.js").Metrics} metrics
 * @property {import("./canvas/marks.js").Inks} inks
 * @property {CanvasPattern | null} hatch
 * @property {string} emphasised the level whose domains stand out
 * @property {(gang: string) => import("../colours.js").GangLook} lookOf
 * @property {(gang: string) => string} nameOf short, for the line of a host
 */

/**
 * Draws the part of a map between two heights, without anything that depends on the pointer or a selection.
 * @param {CanvasRenderingContext2D} ctx in coordinates of the map
 * @param {Scene} scene
 * @param {{x: number, y: number, w: number, h: number}} area
 */
export function drawMap(ctx, scene, area) {
  drawInside(ctx, scene, scene.root, area);
}

/**
 * Draws the head of a box again over the one before.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Scene} scene
 * @param {import("./tree.js").Box} box
 */
export function redrawHeader(ctx, scene, box) {
  const height = headerHeight(box, scene.metrics);
  if (height >= 12) {
    ctx.textBaseline = "middle";
    ctx.fillStyle = boxColour(scene, box);
    ctx.fillRect(box.x + 3, box.y + 2, box.w - 6, height - 3);
    drawHeader(ctx, scene, box, height);
  }
}

/**
 * Draws a host.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Scene} scene
 * @param {import("./tree.js").Host} host
 */
export function drawHost(ctx, scene, host) {
  const { metrics, inks } = scene;
  ctx.fillStyle = inks.host;
  if (metrics.cell >= 10) {
    rounded(ctx, host.x, host.y, host.w, host.h, 4);
    ctx.fill();
  } else {
    ctx.fillRect(host.x, host.y, host.w, host.h);
  }
  drawNames(ctx, scene, host);
  drawCells(ctx, scene, host, null);
  drawMarks(ctx, scene, host);
}

/**
 * Draws the cells of a host.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Scene} scene
 * @param {import("./tree.js").Host} host
 * @param {((gang: string) => boolean) | null} lit only the cells of these gangs
 */
export function drawCells(ctx, scene, host, lit) {
  const { metrics } = scene;
  const left = host.x + metrics.hostPad;
  const top = host.y + metrics.hostPad + metrics.nameLine;
  const bar = cellCount(host.node) === 0;
  const { parts, later } = hostUse(host.node);
  for (const run of cellRuns(host.node, parts)) {
    if (lit !== null && (run.gang === "" || !lit(run.gang))) {
      continue;
    }
    const look = run.gang === "" ? null : scene.lookOf(run.gang);
    const draw = (x, y, w, h) => drawCell(ctx, scene, run.kind, look, x, y, w, h);
    if (bar) {
      const width = host.w - 2 * metrics.hostPad;
      draw(left + run.from * width, top, (run.to - run.from) * width, metrics.bar);
      continue;
    }
    const { cell: height, cellWidth, columns, gap } = metrics;
    if (gap === 0 && cellCount(host.node) <= columns) {
      // Too small for separate cells: a run is one rectangle, which is much faster.
      draw(left + run.from * cellWidth, top, (run.to - run.from) * cellWidth, height);
      continue;
    }
    for (let cell = run.from; cell < run.to; cell += 1) {
      const column = cell % columns;
      const row = (cell - column) / columns;
      draw(left + column * (cellWidth + gap), top + row * (height + gap), cellWidth, height);
    }
  }
  if (later.length > 0) {
    drawLater(ctx, scene, host, later, lit);
  }
}

/** Below its cells: what a host that has too few free GPUs has been reserved for. */
function drawLater(ctx, scene, host, later, lit) {
  const { hostPad } = scene.metrics;
  const room = host.w - 2 * hostPad;
  const most = Math.max(host.node.gpus, later.reduce((sum, { gpus }) => sum + gpus, 0));
  let x = host.x + hostPad;
  for (const { gang, gpus } of later) {
    const width = most === 0 ? 0 : (gpus / most) * room;
    if (lit === null || lit(gang)) {
      laterBar(ctx, x, host.y + host.h, width, hostPad, scene.lookOf(gang));
    }
    x += width;
  }
}

/** Marks that concern a whole host. Its name stays readable. */
export function drawMarks(ctx, scene, host) {
  const { node, x, y, w, h } = host;
  if (node.cordoned) {
    const { nameLine, hostPad } = scene.metrics;
    const above = nameLine === 0 ? 0 : nameLine + hostPad - 2;
    stripes(ctx, x, y + above, w, h - above, scene.inks);
  }
  if (node.taints.length > 0) {
    corner(ctx, x, y, w, h, scene.inks);
  }
  if (!node.ready) {
    const line = scene.metrics.nameLine;
    cross(ctx, x, y + line, w, h - line, scene.inks);
  }
}

function drawCell(ctx, scene, kind, look, x, y, w, h) {
  if (kind === "gang") {
    gangCell(ctx, x, y, w, h, look, scene.inks);
  } else if (kind === "reserved") {
    reservedCell(ctx, x, y, w, h, look);
  } else if (kind === "foreign") {
    foreignCell(ctx, x, y, w, h, scene.inks, scene.hatch);
  } else {
    freeCell(ctx, x, y, w, h, scene.inks);
  }
}

function drawInside(ctx, scene, box, area) {
  for (const host of box.hosts) {
    if (overlaps(host, area)) {
      drawHost(ctx, scene, host);
    }
  }
  for (const child of box.boxes) {
    if (overlaps(child, area)) {
      drawFrame(ctx, scene, child);
      drawInside(ctx, scene, child, area);
    }
  }
}

function drawFrame(ctx, scene, box) {
  const { metrics, inks } = scene;
  ctx.textBaseline = "middle";
  const partition = box.partition !== "";
  const strong = scene.emphasised !== "" && box.level === scene.emphasised && box.kind === "domain";
  ctx.fillStyle = boxColour(scene, box);
  ctx.strokeStyle = strong ? inks["box-strong"] : partition ? inks["partition-border"] : inks["box-border"];
  ctx.lineWidth = strong ? 1.5 : 1;
  rounded(ctx, box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1, metrics.cell >= 8 ? 6 : metrics.cell >= 4 ? 3 : 1);
  ctx.fill();
  ctx.stroke();
  const height = headerHeight(box, metrics);
  if (height < 12) {
    return;
  }
  if (box.kind === "partition") {
    ctx.font = `500 10px ${FONT}`;
    ctx.fillStyle = inks.muted;
    drawText(ctx, `NVLink ${box.name}`, box.x + 6, box.y + height / 2 + 0.5, box.w - 10);
  } else {
    drawHeader(ctx, scene, box, height);
  }
}

function boxColour({ inks }, box) {
  return box.partition !== "" ? inks.partition : box.depth % 2 === 0 ? inks.box : inks["box-inner"];
}

function drawHeader(ctx, scene, box, height) {
  const { metrics, inks } = scene;
  const large = height >= 20;
  const middle = box.y + height / 2 + 1;
  const left = box.x + (large ? metrics.pad : 3);
  let room = box.w - 2 * (left - box.x);
  const { gpus } = box.totals;
  if (large && gpus > 0) {
    ctx.font = `400 11px ${FONT}`;
    ctx.fillStyle = inks.muted;
    const counts = `${inUse(box.totals)}/${gpus}${room > 240 ? " GPUs" : ""}`;
    const width = ctx.measureText(counts).width;
    if (width + 40 < room) {
      ctx.fillText(counts, left + room - width, middle);
      room -= width + 8;
    }
  }
  ctx.font = `600 ${large ? (box.depth === 0 ? 12.5 : 11.5) : 10}px ${FONT}`;
  ctx.fillStyle = box.missing ? inks.muted : inks.text;
  const used = drawText(ctx, boxTitle(box), left, middle, room);
  if (large) {
    ctx.font = `400 11px ${FONT}`;
    ctx.fillStyle = inks.muted;
    const rest = room - used - 6;
    const full = box.partition !== "" ? `NVLink ${box.partition}` : box.depth === 0 && !box.missing ? box.level : "";
    const more = ctx.measureText(full).width > rest ? box.partition : full;
    drawText(ctx, more, left + used + 6, middle, rest);
  }
}

/** Left the name of the host, right the gang, so that gangs are not known by colour alone. */
export function drawNames(ctx, scene, host) {
  const { metrics, inks } = scene;
  if (metrics.nameLine === 0) {
    return;
  }
  ctx.textBaseline = "middle";
  const middle = host.y + metrics.hostPad + metrics.nameLine / 2 - 1.5;
  const left = host.x + metrics.hostPad;
  const room = host.w - 2 * metrics.hostPad - (host.node.taints.length > 0 ? 6 : 0);
  const gangs = mainGangs(host.node);
  const label = gangs.length === 0 ? "" : gangs.length === 1 ? scene.nameOf(gangs[0]) : `${gangs.length} gangs`;
  ctx.font = `400 10px ${FONT}`;
  ctx.fillStyle = inks.text;
  const shown = fitted(ctx, label, room * 0.5);
  const width = shown === "" ? 0 : ctx.measureText(shown).width;
  if (shown !== "") {
    ctx.fillText(shown, left + room - width, middle);
  }
  ctx.fillStyle = inks.muted;
  const name = fittedEnd(ctx, host.name, room - width - 6);
  ctx.fillText(name, left, middle);
}

function overlaps(shape, area) {
  return (
    shape.y < area.y + area.h && shape.y + shape.h > area.y && shape.x < area.x + area.w && shape.x + shape.w > area.x
  );
}
