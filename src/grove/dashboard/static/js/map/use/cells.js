/** What each GPU cell of a host shows. Pure. */

/** A host may claim any number of GPUs: above this, a cell stands for several. */
export const MAX_CELLS = 64;
/** Above this, the cells of a host have more than one row. */
export const MAX_COLUMNS = 16;

/** @typedef {{kind: "gang" | "reserved" | "foreign" | "free", gang: string, from: number, to: number}} Run
 *   cells of the same use, `to` excluded */
/** @typedef {{kind: "gang" | "reserved" | "foreign", gang: string, gpus: number}} Part */

/**
 * How many cells a host has.
 * @param {import("../../wire.js").NodeCells} node
 * @returns {number}
 */
export function cellCount(node) {
  return Math.min(Math.max(0, node.gpus), MAX_CELLS);
}

/**
 * How the GPUs of a host are used: gangs by name, then foreign load. Reservations have what these leave; what does
 * not fit comes later, when GPUs become free.
 * @param {import("../../wire.js").NodeCells} node
 * @returns {{parts: Part[], later: {gang: string, gpus: number}[], free: number}}
 */
export function hostUse(node) {
  const parts = [];
  const later = [];
  let free = Math.max(0, node.gpus);
  for (const use of ordered(node.uses)) {
    const gpus = Math.min(free, use.gpus);
    free -= gpus;
    if (gpus > 0) {
      parts.push({ kind: kindOf(use), gang: use.gang, gpus });
    }
    if (use.reserved && use.gang !== "" && use.gpus > gpus) {
      later.push({ gang: use.gang, gpus: use.gpus - gpus });
    }
  }
  return { parts, later, free };
}

/**
 * The cells of a host in runs of the same use. A host without GPUs has one bar, which the pods of gangs share.
 * @param {import("../../wire.js").NodeCells} node
 * @param {Part[]} [parts] of the host, if they are known
 * @returns {Run[]} from 0 to `cellCount`, or from 0 to 1 for the bar
 */
export function cellRuns(node, parts = hostUse(node).parts) {
  const cells = cellCount(node);
  if (cells === 0) {
    return barRuns(node);
  }
  const perCell = node.gpus / cells;
  const runs = [];
  let gpus = 0;
  for (const part of parts) {
    const from = Math.round(gpus / perCell);
    gpus += part.gpus;
    const to = Math.round(gpus / perCell);
    if (to > from) {
      runs.push({ kind: part.kind, gang: part.gang, from, to });
    }
  }
  const used = runs.length > 0 ? runs[runs.length - 1].to : 0;
  if (used < cells) {
    runs.push({ kind: "free", gang: "", from: used, to: cells });
  }
  return runs;
}

/** The run that a cell belongs to. */
export function runAt(runs, cell) {
  return runs.find((run) => cell >= run.from && cell < run.to) ?? null;
}

/**
 * The gangs that a host is labelled with: those that use its GPUs, or else those that have some reserved, or else
 * all of them.
 * @param {import("../../wire.js").NodeCells} node
 * @returns {string[]}
 */
export function mainGangs(node) {
  const uses = node.uses.filter((use) => use.gang !== "");
  const withGpus = uses.filter((use) => use.gpus > 0);
  const bound = withGpus.filter((use) => !use.reserved);
  const chosen = bound.length > 0 ? bound : withGpus.length > 0 ? withGpus : uses;
  return [...new Set(chosen.map((use) => use.gang))];
}

/**
 * Each gang of a host with what it has there, in words.
 * @param {import("../../wire.js").NodeCells} node
 * @returns {{gang: string, text: string}[]}
 */
export function gangLines(node) {
  const later = new Map(hostUse(node).later.map(({ gang, gpus }) => [gang, gpus]));
  return ordered(node.uses).filter((use) => use.gang !== "").map((use) => {
    const missing = use.reserved ? (later.get(use.gang) ?? 0) : 0;
    const now = use.gpus - missing;
    const texts = [now > 0 && `${gpuCount(now)}${use.reserved ? " reserved" : ""}`, missing > 0 && `${gpuCount(missing)} reserved for it when free`];
    const none = use.reserved ? "reserved, no GPUs" : "no GPUs";
    return { gang: use.gang, text: texts.filter(Boolean).join(", ") || none };
  });
}

/** A number of GPUs. */
export function gpuCount(count) {
  return `${count} ${count === 1 ? "GPU" : "GPUs"}`;
}

function barRuns(node) {
  const uses = ordered(node.uses).filter((use) => use.gang !== "");
  if (uses.length === 0) {
    return [{ kind: node.uses.length > 0 ? "foreign" : "free", gang: "", from: 0, to: 1 }];
  }
  const part = 1 / uses.length;
  return uses.map((use, index) => ({ kind: kindOf(use), gang: use.gang, from: index * part, to: (index + 1) * part }));
}

function ordered(uses) {
  return [...uses].sort(
    (one, other) =>
      Number(one.reserved) - Number(other.reserved) ||
      Number(one.gang === "") - Number(other.gang === "") ||
      (one.gang < other.gang ? -1 : one.gang > other.gang ? 1 : 0),
  );
}

function kindOf(use) {
  return use.gang === "" ? "foreign" : use.reserved ? "reserved" : "gang";
}
