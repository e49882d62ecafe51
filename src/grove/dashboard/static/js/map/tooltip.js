/** A host in words: for the tooltip, and for assistive technology. */

import { h, replaceChildren } from "../dom.js";
import { gangLines } from "./use/cells.js";
import { gpuText, nodeTotals } from "./use/totals.js";

/** More gangs than this are counted instead of listed. */
const MAX_GANGS = 8;

/**
 * A host in one sentence each for its place, its GPUs and its state. Pure.
 * @param {string} name
 * @param {import("../wire.js").NodeCells} node
 * @param {{name: string, label: string}[]} levels
 * @returns {string}
 */
export function hostSentence(name, node, levels) {
  const place = levels.map((level) => (node.domains[level.label] ? `${level.name} ${node.domains[level.label]}` : `no ${level.name}`));
  const state = hostStates(node).map(([, text]) => text);
  const gangs = gangLines(node).map(({ gang, text }) => `${gang} (${text})`);
  return [
    [`Host ${name}`, ...place].join(", "),
    gpuSentence(node),
    gangs.length > 0 ? `gangs ${gangs.join(", ")}` : "no gangs",
    ...state,
    node.partition && `NVLink partition ${node.partition}`,
  ].filter(Boolean).join(". ");
}

/**
 * How the GPUs of a host are used. Pure.
 * @param {import("../wire.js").NodeCells} node
 * @returns {string} such as `8 GPUs: 4 used, 2 reserved, 2 free`
 */
export function gpuSentence(node) {
  return gpuText(nodeTotals(node));
}

/**
 * What is special about a host. Pure.
 * @param {import("../wire.js").NodeCells} node
 * @returns {[string, string][]} kind and text
 */
export function hostStates(node) {
  const states = [];
  if (!node.ready) {
    states.push(["not-ready", "not ready"]);
  }
  if (node.cordoned) {
    states.push(["cordoned", "cordoned"]);
  }
  if (node.taints.length > 0) {
    states.push(["tainted", `tainted: ${node.taints.join(", ")}`]);
  }
  return states;
}

/**
 * The tooltip beside the pointer or the focused host.
 * @param {(gang: string) => import("../colours.js").GangLook} lookOf
 */
export function tooltip(lookOf) {
  const element = h("div", { class: "tooltip", role: "presentation", hidden: true });
  return {
    element,
    /**
     * Shows a host; null hides the tooltip.
     * @param {import("./interaction.js").Target | null} target
     */
    show(target) {
      if (target === null || target.host === null) {
        element.hidden = true;
        return;
      }
      const { name, node } = target.host;
      replaceChildren(
        element,
        h("div", { class: "tooltip-name" }, name),
        !target.gang && target.kind !== "" && h("div", null, target.kind === "foreign" ? "foreign load" : "free"),
        gangItems(node, target.gang, lookOf),
        h("div", { class: "muted" }, gpuSentence(node)),
        hostStates(node).map(([kind, text]) => h("div", { class: `state-${kind}` }, text)),
      );
      element.hidden = false;
      const { offsetWidth: width, offsetHeight: height } = element;
      const left = target.x + 14 + width > innerWidth ? target.x - 14 - width : target.x + 14;
      const top = target.y + 14 + height > innerHeight ? target.y - 10 - height : target.y + 14;
      element.style.setProperty("transform", `translate(${Math.max(4, Math.round(left))}px, ${Math.max(4, Math.round(top))}px)`);
    },
  };
}

/** A small square that looks like the cells of a gang. */
export function swatch({ colour, texture }) {
  return h("span", { class: "swatch", dataset: { texture: String(texture) }, style: { "background-color": colour }, "aria-hidden": "true" });
}

/** All gangs of a host; the one under the pointer stands out, and is among them. */
function gangItems(node, pointed, lookOf) {
  const lines = gangLines(node).sort((one, other) => Number(other.gang === pointed) - Number(one.gang === pointed));
  return [
    lines.slice(0, MAX_GANGS).map(({ gang, text }) => {
      const kind = gang === pointed ? "tooltip-gang pointed" : "tooltip-gang";
      return h("div", { class: kind }, swatch(lookOf(gang)), h("span", null, gang, h("span", { class: "muted" }, `: ${text}`)));
    }),
    lines.length > MAX_GANGS && h("div", { class: "muted" }, `and ${lines.length - MAX_GANGS} more gangs`),
  ];
}
