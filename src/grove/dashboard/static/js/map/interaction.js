/** Pointer and keyboard on the map. */

import { typesText } from "../shortcuts.js";
import { neighbour } from "./geometry.js";
import { domainKey } from "./tree.js";
import { cellRuns, mainGangs, runAt } from "./use/cells.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

/** @typedef {{host: import("./tree.js").Host | null, domain: import("./tree.js").Box | null, gang: string, kind: string,
 *   x: number, y: number}} Target domain: its title is at the point */

/**
 * Follows the pointer and the keyboard.
 * @param {import("./canvas/view.js").MapView} view
 * @param {{hosts: () => import("./tree.js").Host[], hover: (target: Target | null) => void,
 *   focus: (host: import("./tree.js").Host | null) => void, select: (host: import("./tree.js").Host, gang: string) => void,
 *   selectDomain: (domain: import("./tree.js").Box) => void, clear: () => void}} owner
 * @returns {{forget: () => void}} forget: the hosts have changed
 */
export function followInput(view, owner) {
  const { element } = view;
  let focused = null;
  let pointer = null;

  const focus = (host) => {
    focused = host;
    if (host !== null) {
      view.reveal(host);
    }
    owner.focus(host);
  };
  const hoverAt = (event) => {
    pointer = event;
    const target = targetAt(view, event);
    element.classList.toggle("over-target", target.host !== null || target.domain !== null);
    owner.hover(target.host === null ? null : target);
  };
  const select = (host, gang) => {
    focused = host;
    owner.select(host, gang || onlyGang(host.node));
  };

  element.addEventListener("pointermove", (event) => event.pointerType === "mouse" && hoverAt(event));
  element.addEventListener("pointerleave", () => {
    pointer = null;
    owner.hover(null);
  });
  // What is under the pointer changes when the map moves below it.
  element.addEventListener("scroll", () => pointer && hoverAt(pointer), { passive: true });
  element.addEventListener("click", (event) => {
    const { host, domain, gang } = targetAt(view, event);
    if (host !== null) {
      select(host, gang);
    } else if (domain !== null) {
      owner.selectDomain(domain);
    } else {
      owner.clear();
    }
  });
  element.addEventListener("focus", () => {
    if (element.matches(":focus-visible")) {
      focus(current(owner.hosts(), focused));
    }
  });
  element.addEventListener("blur", () => owner.focus(null));
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const hosts = owner.hosts();
    const from = current(hosts, focused);
    if (from === null) {
      return;
    }
    if (ARROWS.includes(event.key)) {
      focus(neighbour(hosts, from, event.key));
    } else if (event.key === "Home") {
      focus(hosts[0]);
    } else if (event.key === "End") {
      focus(hosts[hosts.length - 1]);
    } else if (event.key === "Enter" || event.key === " ") {
      focus(from);
      select(from, "");
    } else {
      return;
    }
    event.preventDefault();
  });

  return {
    forget() {
      focused = focused === null ? null : (owner.hosts().find((host) => host.name === focused.name) ?? null);
      if (element === document.activeElement && element.matches(":focus-visible")) {
        owner.focus(focused);
      }
    },
  };
}

function current(hosts, focused) {
  return focused ?? hosts[0] ?? null;
}

function targetAt(view, event) {
  const { box, host, cell, title } = view.find(event.clientX, event.clientY);
  const run = host === null || cell < 0 ? null : runAt(cellRuns(host.node), cell);
  const domain = host === null && title && domainKey(box) !== "" ? box : null;
  return { host, domain, gang: run?.gang ?? "", kind: run?.kind ?? "", x: event.clientX, y: event.clientY };
}

/** The gang that a host is labelled with: to select the host selects it too. */
function onlyGang(node) {
  const gangs = mainGangs(node);
  return gangs.length === 1 ? gangs[0] : "";
}

/**
 * The keys that work on the whole page of the map, but not where they are typed.
 * @param {{clear: () => void, zoom: (steps: number) => void}} owner
 * @returns {() => void} ends it
 */
export function followKeys(owner) {
  const press = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typesText(event.target) || document.querySelector("dialog[open]") !== null) {
      return;
    }
    const act = { Escape: owner.clear, "+": () => owner.zoom(1), "=": () => owner.zoom(1), "-": () => owner.zoom(-1) }[event.key];
    if (act !== undefined) {
      act();
      event.preventDefault();
    }
  };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}
