/** The YAML of one object, beside the page. */

import { h } from "../dom.js";
import { get } from "../api.js";
import { banner } from "./parts/badges.js";
import { icon } from "./parts/icons.js";

/** Longer objects are cut: a browser needs seconds to lay out megabytes. The download has all that the server sends. */
const LINES = 4000;
const CHARACTERS = 400000;
const LINE = /^(\s*(?:- )*)("[^"]*"|'[^']*'|[^\s:#'"[\]{}][^:#]*)(:)(\s.*)?$/;

/**
 * A dialog; it is opened with the object and its namespace.
 * @param {() => void} closed called when the reader closes it
 * @returns {{element: HTMLDialogElement, open: (namespace: string, kind: string, name: string) => void, dispose: () => void}}
 */
export function yamlDialog(closed) {
  const title = h("h2", { id: "yaml-title" });
  const status = h("span", { class: "muted", role: "status" });
  const body = h("div", { class: "yaml-body" });
  const wrap = tool("wrap", "Wrap lines", { "aria-pressed": "true" });
  const copy = tool("copy", "Copy");
  const save = tool("download", "Download");
  const close = tool("close", "Close");
  const element = h("dialog", { class: "yaml", "aria-labelledby": "yaml-title" },
    h("div", { class: "yaml-head" }, title, status, h("div", { class: "yaml-tools" }, wrap, copy, save, close)), body);
  let text = "";
  let file = "";
  let run = 0;

  const setWrap = (on) => {
    wrap.setAttribute("aria-pressed", String(on));
    body.classList.toggle("wrapped", on);
  };
  setWrap(true);
  wrap.addEventListener("click", () => setWrap(wrap.getAttribute("aria-pressed") !== "true"));
  copy.addEventListener("click", async () => {
    status.textContent = await copied(text, body) ? "Copied" : "Selected: copy it with the keyboard";
  });
  save.addEventListener("click", () => download(text, file));
  close.addEventListener("click", () => element.close());
  // A click beside the dialog lands on the element itself.
  element.addEventListener("click", (event) => event.target === element && element.close());
  const ended = () => {
    run += 1;
    closed();
  };
  element.addEventListener("close", ended);

  const open = async (namespace, kind, name) => {
    const own = ++run;
    text = "";
    file = `${kind}-${name}.yaml`;
    title.replaceChildren(h("span", { class: "muted" }, `${kind} `), name);
    status.textContent = "Reading…";
    body.replaceChildren();
    copy.disabled = save.disabled = true;
    if (!element.open) element.showModal();
    try {
      const found = await get("/api/object", { namespace, kind, name });
      if (own !== run) return;
      text = found;
      status.textContent = "";
      copy.disabled = save.disabled = false;
      body.replaceChildren(...view(text));
    } catch (problem) {
      if (own !== run) return;
      status.textContent = "";
      body.replaceChildren(banner("bad", problem.message));
    }
  };
  const dispose = () => {
    // The page is left for another address, which must stay as it is.
    element.removeEventListener("close", ended);
    run += 1;
    if (element.open) element.close();
  };
  return { element, open, dispose };
}

function tool(picture, label, props = {}) {
  return h("button", { type: "button", class: "tool-button", "aria-label": label, title: label, ...props }, icon(picture));
}

/** The text as lines, with keys in another colour than values. */
function view(text) {
  const lines = text.slice(0, CHARACTERS).split("\n");
  const cut = text.length > CHARACTERS || lines.length > LINES;
  const code = h("code", null, lines.slice(0, LINES).map((line) => h("span", { class: "line" }, lineParts(line), "\n")));
  const pre = h("pre", { class: "yaml-text", tabindex: "0", "aria-label": "YAML" }, code);
  return cut ? [banner("warn", `Only the first ${Math.min(LINES, lines.length)} lines of ${text.split("\n").length} are shown. Download it to see all.`), pre] : [pre];
}

function lineParts(line) {
  const found = LINE.exec(line.slice(0, 2000));
  if (/^\s*#/.test(line)) return [h("span", { class: "yaml-comment" }, line)];
  if (!found || line.length > 2000) return [line];
  const [, indent, key, colon, value = ""] = found;
  return [indent, h("span", { class: "yaml-key" }, key), colon, value && h("span", { class: "yaml-value" }, value)].filter(Boolean);
}

/** Copies a text; without the right to do so, selects what is shown. */
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(shown);
    return false;
  }
}

function download(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
