/** Beside the map: gangs that wait, and the latest events. */

import { h } from "../dom.js";
import { link } from "../router.js";
import { age, countUp } from "./parts/ages.js";
import { reason } from "./parts/badges.js";
import { latestEvents } from "./parts/events_of.js";
import { icon } from "./parts/icons.js";
import { gangLink } from "./parts/links.js";
import { show } from "./parts/morph.js";
import { repaint } from "./parts/repaint.js";
import { aboutText } from "./parts/sections.js";
import { waitingGangs } from "./parts/waiting_gangs.js";

const GANGS = 8;
const EVENTS = 12;

/**
 * @param {import("../store.js").Store} store
 * @returns {{element: HTMLElement, update: () => void, dispose: () => void}}
 */
export function page(store) {
  const element = h("div", { class: "side-column" });
  const draw = () => show(element, waiting(store.picture), recent(store.picture));
  const paint = repaint(draw);
  const stop = countUp(element, store);
  draw();
  return {
    element,
    update: paint.request,
    dispose() {
      stop();
      paint.cancel();
    },
  };
}

function waiting(picture) {
  const gangs = waitingGangs(picture);
  const partly = Boolean(picture?.viewer?.namespaces);
  return h("section", { class: "card side-card", "data-key": "waiting" },
    head("Waiting", gangs.length, gangs.length > GANGS && link("waiting")),
    gangs.length
      ? h("ul", { class: "side-list" }, gangs.slice(0, GANGS).map((gang) =>
        h("li", { "data-key": gang.key },
          h("a", { href: gangLink(gang.key), class: "side-row", title: gang.waiting.message },
            h("span", { class: "side-line" }, h("span", { class: "side-name" }, gang.name), age(gang.since)),
            h("span", { class: "side-line" }, reason(gang.waiting.code), h("span", { class: "side-where" }, gang.namespace)),
            h("span", { class: "one-line" }, gang.waiting.message)))))
      : h("p", { class: "side-empty" }, icon("check"), partly ? "Nothing that you may see waits" : "Nothing waits"));
}

function recent(picture) {
  const events = latestEvents(picture);
  return h("section", { class: "card side-card", "data-key": "events" },
    head("Events", 0, events.length > EVENTS && link("events")),
    events.length
      ? h("ul", { class: "side-list" }, events.slice(0, EVENTS).map((event) =>
        h("li", { "data-key": event.key, class: "side-row" },
          h("span", { class: "side-line" },
            h("span", { class: `side-reason ${event.type === "Warning" ? "warn" : ""}` },
              event.type === "Warning" && icon("alert"), event.reason,
              event.type === "Warning" && h("span", { class: "visually-hidden" }, " (warning)")),
            age(event.time)),
          h("span", { class: "side-line side-about" }, aboutText(event.about, picture)),
          h("span", { class: "one-line", title: event.message }, event.message))))
      : h("p", { class: "side-empty" }, picture?.source.live === false ? "A snapshot has no events" : "No events"));
}

function head(title, count, more) {
  return h("div", { class: "side-head" },
    h("h2", null, title, count > 0 && h("span", { class: "counter" }, String(count))),
    more && h("a", { href: more, class: "quiet-link" }, `All ${title.toLowerCase() === "waiting" ? "that wait" : "events"}`));
}
