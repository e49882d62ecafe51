/** One line above the map: how the GPUs and hosts are used in total. */

import { h, setText } from "../dom.js";
import { hostsText, inUse, PARTS } from "./use/totals.js";

const TITLES = { blocked: "not used, on hosts that are cordoned, not ready or tainted", reserved: "for pods that are not bound yet", foreign: "used by pods of no visible gang" };

/**
 * The line.
 * @returns {{element: HTMLElement, update: (totals: import("./use/totals.js").Totals, gangs: {waiting: Object | null}[],
 *   selected: string) => void}} gangs: those of the filter; selected: what they use, before how many they are
 */
export function summary() {
  const bar = h("div", { class: "summary-bar", "aria-hidden": "true" });
  const pieces = new Map(PARTS.map(([name]) => [name, h("span", { class: `summary-piece piece-${name}` })]));
  bar.append(...pieces.values());
  const facts = new Map(["gpus", ...PARTS.map(([name]) => name), "hosts", "gangs"].map((name) => [name, h("span", { class: `fact fact-${name}`, title: TITLES[name] ?? null })]));
  const element = h("div", { class: "summary" }, [...facts.values()].slice(0, 1), bar, [...facts.values()].slice(1));
  return {
    element,
    update(totals, gangs, selected) {
      const waiting = gangs.filter((gang) => gang.waiting !== null).length;
      setText(facts.get("gpus"), totals.gpus === 0 ? "no GPUs" : `${percent(inUse(totals), totals.gpus)}% of ${totals.gpus.toLocaleString("en")} GPUs in use`);
      for (const [name, word] of PARTS) {
        pieces.get(name).style.setProperty("flex-grow", String(totals[name]));
        setText(facts.get(name), `${totals[name].toLocaleString("en")} ${word}`);
      }
      facts.get("blocked").hidden = totals.blocked === 0;
      bar.hidden = totals.gpus === 0;
      setText(facts.get("hosts"), hostsText(totals));
      const count = gangs.length;
      setText(facts.get("gangs"), selected + (count === 1 ? `1 gang${waiting ? ", it waits" : ""}` : `${count} gangs${waiting ? `, ${waiting} waiting` : ""}`));
      facts.get("gangs").classList.toggle("selected", selected !== "");
    },
  };
}

/** Only all is 100%, and only none is 0%. */
function percent(part, whole) {
  const share = Math.round((100 * part) / whole);
  return part > 0 && part < whole ? Math.min(99, Math.max(1, share)) : share;
}

/** What the user should know about the map, in one line. Pure. */
export function noteOf(picture) {
  if (!picture.viewer.nodes) {
    return "You may not list nodes: these are the domains that your gangs report, without hosts and without foreign load.";
  }
  if (Object.keys(picture.nodes).length === 0 && picture.unread.length === 0) {
    return "The cluster has no nodes.";
  }
  return picture.unread.length > 0 ? `Not everything could be read: ${picture.unread.join("; ")}` : "";
}
