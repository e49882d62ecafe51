/** Ages that count up, by the clock of the server: that of a reader may be wrong. */

import { h, setText } from "../../dom.js";
import { age as ageText } from "../../time.js";

/** The clock of the store that the pages show; there is one. */
let clock = () => Date.now();

/**
 * The age of something, which counts up by itself while `countUp` runs.
 * @param {string|null|undefined} time RFC 3339
 * @param {string} [after] a word after it, such as `ago`
 */
export function age(time, after = "") {
  if (!time || Number.isNaN(Date.parse(time))) return h("span", { class: "age" }, "–");
  const props = { class: "age", datetime: time, title: dateText(time), "data-age": after };
  return h("time", props, text(time, after));
}

/** A date and a time as the reader's settings have them. */
export function dateText(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/**
 * Lets all ages below an element count up, without any other change of it. Those of a snapshot stand still.
 * @param {Element} root
 * @param {import("../../store.js").Store} store
 * @returns {() => void} ends it
 */
export function countUp(root, store) {
  clock = () => (store.picture?.source?.live === false ? Date.parse(store.picture.now) : store.now());
  const timer = setInterval(() => {
    for (const each of root.querySelectorAll("time[data-age]")) setText(each, text(each.dateTime, each.dataset.age));
  }, 1000);
  return () => clearInterval(timer);
}

function text(time, after) {
  const short = ageText(time, clock());
  return after ? `${short} ${after}` : short;
}
