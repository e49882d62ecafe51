/** Words about states: a verdict, a phase, a reason. Each has a shape and a word, never only a colour. */

import { h } from "../../dom.js";
import { icon } from "./icons.js";
import { REASON_WORDS } from "./reason_words.js";

const VERDICTS = {
  Healthy: ["good", "check"],
  Progressing: ["info", "progress"],
  Terminating: ["plain", "end"],
  Waiting: ["warn", "clock"],
  Degraded: ["bad", "alert"],
  Unknown: ["plain", "question"],
};
const STATES = {
  ready: "good", running: "good", succeeded: "good", complete: "good", enforced: "good", reserved: "good",
  allocated: "good", successful: "good",
  starting: "info", progressing: "info", updating: "info",
  pending: "warn", gated: "warn", unscheduled: "warn", paused: "warn", notready: "warn",
  failing: "bad", failed: "bad", degraded: "bad", conflict: "bad", deadlineexceeded: "bad", unhealthy: "bad",
  "not enforced": "bad", warning: "warn",
};
/** Longer texts of tenants are cut, and open on demand. */
const LONGEST_TEXT = 320;

/** The colour of a state: `good`, `info`, `warn`, `bad` or `plain`. */
export function tone(state) {
  return STATES[String(state ?? "").toLowerCase()] ?? "plain";
}

/** Whether a set is healthy. */
export function verdict(name) {
  const [colour, picture] = VERDICTS[name] ?? VERDICTS.Unknown;
  return h("span", { class: `verdict ${colour}` }, icon(picture), name);
}

/** The colour of a verdict. */
export function verdictTone(name) {
  return (VERDICTS[name] ?? VERDICTS.Unknown)[0];
}

/** The state of a pod, or the phase of a gang or domain. */
export function state(word) {
  return h("span", { class: `state ${tone(word)}` }, word || "unknown");
}

/**
 * The code of a reason, with what it means in words; a link if there is more to read about it.
 * @param {string} code
 * @param {string} [href]
 */
export function reason(code, href = "") {
  const props = { class: "code", title: REASON_WORDS[code] ?? code };
  return href ? h("a", { ...props, href }, code) : h("span", props, code);
}

/** What a code means, in a sentence; empty for a code that this page does not know. */
export function meaning(code) {
  return REASON_WORDS[code] ?? "";
}

/**
 * A text of any length: a long one is cut, and a part to open has all of it.
 * @param {string} text
 */
export function longText(text, longest = LONGEST_TEXT) {
  const whole = String(text ?? "");
  if (whole.length <= longest) return h("span", { class: "text" }, whole);
  return h("details", { class: "text long" },
    h("summary", null, h("span", { class: "cut" }, `${whole.slice(0, longest)}… `), h("span", { class: "more" }, "show all")),
    h("span", { class: "rest" }, whole));
}

/** A name that may be longer than its column: it wraps anywhere, and its title has all of it. */
export function name(text) {
  return h("span", { class: "name", title: text }, text);
}

/** `2 of 8` as text with a bar below it. */
export function share(part, whole, colour = "") {
  const bar = h("span", { class: `bar ${colour}`, "aria-hidden": "true" }, h("span", { class: "fill" }));
  const ratio = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  bar.firstChild.style.setProperty("width", `${(ratio * 100).toFixed(1)}%`);
  return h("span", { class: "share" }, h("span", { class: "number" }, `${part}/${whole}`), bar);
}

/** `1 pod`, `2 pods`. */
export function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/**
 * What is shown instead of content: while it is read, if it cannot be read, or if there is none.
 * @param {string} title
 * @param {string} [detail]
 * @param {string} [picture] the name of an icon
 */
export function empty(title, detail = "", picture = "check") {
  return h("div", { class: "empty" }, icon(picture), h("p", { class: "empty-title" }, title), detail && h("p", { class: "empty-detail" }, detail));
}

/** A line across the page about its state. */
export function banner(colour, text, ...more) {
  const picture = { bad: "alert", warn: "alert", good: "check" }[colour] ?? "progress";
  return h("div", { class: `banner ${colour}`, role: colour === "bad" ? "alert" : "status" }, icon(picture), h("span", null, text), ...more);
}
