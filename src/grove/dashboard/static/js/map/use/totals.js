/** How many GPUs and hosts there are, and what of them is used. Pure. */

import { hostUse } from "./cells.js";

/** @typedef {{gpus: number, used: number, reserved: number, foreign: number, free: number, blocked: number,
 *   hosts: number, cordoned: number, notReady: number, tainted: number}} Totals
 *   used: by gangs; free: usable; blocked: not used, on hosts that are cordoned, not ready or tainted */

/** The parts of a total, in the order in which they are named. */
export const PARTS = [["used", "used"], ["reserved", "reserved"], ["foreign", "foreign"], ["free", "free"], ["blocked", "blocked"]];

/** What a node has and what of it is used. A use that exceeds the node counts only as far as it fits. */
export function nodeTotals(node) {
  const totals = noTotals();
  totals.hosts = 1;
  totals.gpus = Math.max(0, node.gpus);
  totals.cordoned = node.cordoned ? 1 : 0;
  totals.notReady = node.ready ? 0 : 1;
  totals.tainted = node.taints.length > 0 ? 1 : 0;
  const { parts, free } = hostUse(node);
  for (const { kind, gpus } of parts) {
    totals[kind === "gang" ? "used" : kind] += gpus;
  }
  const usable = node.ready && !node.cordoned && node.taints.length === 0;
  totals[usable ? "free" : "blocked"] = free;
  return totals;
}

/** The GPUs that pods use, of gangs or not. */
export function inUse(totals) {
  return totals.used + totals.foreign;
}

/**
 * How GPUs are used.
 * @param {Totals} totals
 * @returns {string} such as `8 GPUs: 4 used, 2 reserved, 2 free`
 */
export function gpuText(totals) {
  if (totals.gpus === 0) {
    return "no GPUs";
  }
  const parts = PARTS.filter(([name]) => totals[name] > 0).map(([name, word]) => `${totals[name].toLocaleString("en")} ${word}`);
  return `${totals.gpus.toLocaleString("en")} ${totals.gpus === 1 ? "GPU" : "GPUs"}: ${parts.join(", ")}`;
}

/** Hosts with what keeps pods from them. */
export function hostsText({ hosts, cordoned, notReady, tainted }) {
  const special = [cordoned && `${cordoned} cordoned`, notReady && `${notReady} not ready`, tainted && `${tainted} tainted`].filter(Boolean).join(", ");
  return `${hosts.toLocaleString("en")} ${hosts === 1 ? "host" : "hosts"}${special ? ` (${special})` : ""}`;
}

/** No GPUs and no hosts. */
export function noTotals() {
  return { gpus: 0, used: 0, reserved: 0, foreign: 0, free: 0, blocked: 0, hosts: 0, cordoned: 0, notReady: 0, tainted: 0 };
}

/** Adds totals to a sum. */
export function add(sum, more) {
  for (const key of Object.keys(sum)) {
    sum[key] += more[key];
  }
}
