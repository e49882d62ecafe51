/** Keyboard shortcuts of the whole page, and the dialog that lists them. */

import { h } from "./dom.js";

const KEYS = [
  [["/"], "search"],
  [["?"], "show this list"],
  [["←", "→", "↑", "↓"], "go from host to host on the map"],
  [["Home", "End"], "first and last host"],
  [["Enter"], "select the host and its gang"],
  [["+", "−"], "larger and smaller cells"],
  [["Esc"], "clear the selection or the search"],
];

/**
 * Installs the shortcuts.
 * @param {() => void} focusSearch
 * @returns {{element: HTMLDialogElement, show: () => void}}
 */
export function shortcuts(focusSearch) {
  const dialog = h(
    "dialog",
    { class: "shortcuts", "aria-labelledby": "shortcuts-title" },
    h("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"),
    h("dl", null, KEYS.map(([keys, text]) => h("div", null, h("dt", null, keys.map((key) => h("kbd", null, key))), h("dd", null, text)))),
    h("button", { type: "button", class: "button", on: { click: () => dialog.close() } }, "Close"),
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  const show = () => dialog.open || dialog.showModal();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typesText(event.target) || dialog.open) {
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      focusSearch();
    } else if (event.key === "?") {
      event.preventDefault();
      show();
    }
  });
  return { element: dialog, show };
}

/** Whether keys that are pressed there are text. */
export function typesText(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
