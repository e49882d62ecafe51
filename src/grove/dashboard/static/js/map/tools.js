/** The buttons beside the filters: the size of cells, and map or table. */

import { h, replaceChildren } from "../dom.js";
import { changed, go } from "../router.js";
import { COMFORTABLE } from "./layout.js";

/**
 * The buttons.
 * @param {(steps: number) => void} zoom makes cells larger or smaller
 * @returns {{element: HTMLElement, update: (route: import("../router.js").Route, cell: number, nodes: boolean) => void}}
 *   cell: the size that is asked for, 0 to fit; nodes: whether the user sees nodes
 */
export function tools(zoom) {
  const element = h("div", { class: "map-tools" });
  let route = null;
  let shown = "";
  const to = (changes) => () => go(changed(route, changes));
  return {
    element,
    update(present, cell, nodes) {
      route = present;
      const asTable = route.query.get("view") === "table";
      const key = JSON.stringify([asTable, cell, nodes]);
      if (key === shown) {
        return;
      }
      shown = key;
      const focused = element.contains(document.activeElement) ? document.activeElement.textContent : null;
      replaceChildren(
        element,
        nodes && !asTable && segments("Size of cells",
          button("−", null, () => zoom(-1), "Smaller cells"),
          button("Fit", cell === 0, to({ zoom: "fit" })),
          button("Comfortable", cell === COMFORTABLE, to({ zoom: String(COMFORTABLE) })),
          button("+", null, () => zoom(1), "Larger cells")),
        nodes && segments("View",
          button("Map", !asTable, to({ view: "" })),
          button("Table", asTable, to({ view: "table" }))),
      );
      [...element.querySelectorAll("button")].find((candidate) => candidate.textContent === focused)?.focus();
    },
  };
}

function segments(label, ...buttons) {
  return h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
}

function button(text, pressed, act, label = null) {
  const state = pressed === null ? null : String(pressed);
  return h("button", { type: "button", class: "button", "aria-pressed": state, "aria-label": label, title: label, on: { click: act } }, text);
}
