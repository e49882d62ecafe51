/** Finds hosts on the map: under the pointer, in a part of it, next to another one. Pure. */

import { cellCount } from "./use/cells.js";

/** Whether a box or host reaches into the part of the map from `top` to `bottom`. */
export function reaches(shape, top, bottom) {
  return shape.y < bottom && shape.y + shape.h > top;
}

/**
 * Calls `visit` for each host that reaches into a part of the map.
 * @param {import("./tree.js").Box} box
 * @param {number} top
 * @param {number} bottom
 * @param {(host: import("./tree.js").Host) => void} visit
 */
export function eachHost(box, top, bottom, visit) {
  for (const host of box.hosts) {
    if (reaches(host, top, bottom)) {
      visit(host);
    }
  }
  for (const child of box.boxes) {
    if (reaches(child, top, bottom)) {
      eachHost(child, top, bottom, visit);
    }
  }
}

/**
 * What is at a point.
 * @param {import("./tree.js").Box} box
 * @param {number} x
 * @param {number} y
 * @returns {{box: import("./tree.js").Box, host: import("./tree.js").Host | null}} the innermost box
 */
export function at(box, x, y) {
  const inner = box.boxes.find((child) => contains(child, x, y));
  if (inner !== undefined) {
    return at(inner, x, y);
  }
  return { box, host: box.hosts.find((host) => contains(host, x, y)) ?? null };
}

/**
 * The cell of a host at a point, or the part of the bar of a host without GPUs.
 * @param {import("./tree.js").Host} host
 * @param {import("./layout.js").Metrics} metrics
 * @param {number} x
 * @param {number} y
 * @returns {number} -1: none
 */
export function cellAt(host, metrics, x, y) {
  const left = x - host.x - metrics.hostPad;
  const top = y - host.y - metrics.hostPad - metrics.nameLine;
  const cells = cellCount(host.node);
  if (cells === 0) {
    const part = left / (metrics.hostWidth - 2 * metrics.hostPad);
    return part >= 0 && part < 1 ? part : -1;
  }
  const column = Math.floor(left / (metrics.cellWidth + metrics.gap));
  const row = Math.floor(top / (metrics.cell + metrics.gap));
  const cell = row * metrics.columns + column;
  return top >= 0 && column >= 0 && column < metrics.columns && cell < cells ? cell : -1;
}

/**
 * The next host in a direction: the nearest one, of which those in the same column or row count as nearer.
 * @param {import("./tree.js").Host[]} hosts
 * @param {import("./tree.js").Host} from
 * @param {"ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight"} key
 * @returns {import("./tree.js").Host} `from` if there is none
 */
export function neighbour(hosts, from, key) {
  const vertical = key === "ArrowUp" || key === "ArrowDown";
  const sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
  let best = from;
  let least = Infinity;
  for (const host of hosts) {
    const dx = middleX(host) - middleX(from);
    const dy = middleY(host) - middleY(from);
    const ahead = sign * (vertical ? dy : dx);
    const aside = Math.abs(vertical ? dx : dy);
    if (ahead > 0.5 && aside <= 4 * ahead + 1) {
      const distance = ahead + 3 * aside;
      if (distance < least) {
        least = distance;
        best = host;
      }
    }
  }
  return best;
}

function contains(shape, x, y) {
  return x >= shape.x && x < shape.x + shape.w && y >= shape.y && y < shape.y + shape.h;
}

function middleX(host) {
  return host.x + host.w / 2;
}

function middleY(host) {
  return host.y + host.h / 2;
}
