/** What gangs have in a domain. Pure. */

import { hostsOf } from "../tree.js";
import { hostUse } from "./cells.js";

/** @typedef {{gpus: number, pods: number}} Amount */

/**
 * The gangs of a box by key, with what they use, what is reserved for them, and what is reserved but used now.
 * @param {import("../tree.js").Box} box
 * @returns {Map<string, {used: Amount, reserved: Amount, later: number}>}
 */
export function gangsOf(box) {
  const gangs = new Map();
  for (const { node } of hostsOf(box)) {
    for (const use of node.uses) {
      if (use.gang !== "") {
        const sum = gangs.get(use.gang) ?? { used: { gpus: 0, pods: 0 }, reserved: { gpus: 0, pods: 0 }, later: 0 };
        const part = use.reserved ? sum.reserved : sum.used;
        const later = use.reserved ? laterOf(node, use.gang) : 0;
        part.gpus += use.gpus - later;
        part.pods += use.pods;
        sum.later += later;
        gangs.set(use.gang, sum);
      }
    }
  }
  return gangs;
}

/**
 * What the gangs of a filter have in a box. Hosts count that run their pods.
 * @param {import("../tree.js").Box} box
 * @param {(gang: string) => boolean} filter
 * @returns {{gpus: number, reserved: number, hosts: number}}
 */
export function selectedUse(box, filter) {
  const sum = { gpus: 0, reserved: 0, hosts: 0 };
  for (const { node } of hostsOf(box)) {
    let runs = false;
    for (const use of node.uses) {
      if (use.gang !== "" && filter(use.gang)) {
        sum[use.reserved ? "reserved" : "gpus"] += use.gpus - (use.reserved ? laterOf(node, use.gang) : 0);
        runs ||= !use.reserved;
      }
    }
    sum.hosts += runs ? 1 : 0;
  }
  return sum;
}

function laterOf(node, gang) {
  return hostUse(node).later.find((each) => each.gang === gang)?.gpus ?? 0;
}

/**
 * What the gangs of a filter have, in words.
 * @param {{gpus: number, reserved: number, hosts: number}} use
 * @returns {string} such as `64 GPUs in 8 hosts, 8 reserved`
 */
export function selectedText({ gpus, reserved, hosts }) {
  const used = `${gpus.toLocaleString("en")} ${gpus === 1 ? "GPU" : "GPUs"} in ${hosts.toLocaleString("en")} ${hosts === 1 ? "host" : "hosts"}`;
  return reserved > 0 ? `${used}, ${reserved.toLocaleString("en")} reserved` : used;
}
