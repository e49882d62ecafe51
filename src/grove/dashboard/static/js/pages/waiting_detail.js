/** Why one gang waits: what it needs, where that is missing, and what would help. */

import { h } from "../dom.js";
import { link } from "../router.js";
import { age, countUp } from "./parts/ages.js";
import { banner, empty, plural, state } from "./parts/badges.js";
import { domainTable, holderTable, remedyList } from "./parts/domain_table.js";
import { mapGangLink, setLink, splitKey } from "./parts/links.js";
import { show } from "./parts/morph.js";
import { Reading } from "./parts/reading.js";
import { repaint } from "./parts/repaint.js";
import { breadcrumb, containers, events, fact, failure, reasons, section, unreadNote } from "./parts/sections.js";

/**
 * @param {import("../store.js").Store} store
 * @param {{path: string[], query: URLSearchParams}} params the path is a namespace and the name of a gang
 */
export function page(store, params) {
  const [namespace, gang] = params.path.slice(-2);
  const key = `${namespace}/${gang}`;
  const element = h("article", { class: "page detail" });
  const draw = () => show(element, content(store, key, reading));
  const paint = repaint(draw);
  const reading = new Reading("/api/explanation", { namespace, name: `gang/${gang}` }, paint.now);
  reading.retryOnClick(element);
  let seen = mark(store, key);
  const stop = countUp(element, store);
  draw();
  return {
    element,
    update() {
      const found = mark(store, key);
      if (found !== seen) reading.again();
      seen = found;
      paint.request();
    },
    dispose() {
      stop();
      paint.cancel();
      reading.dispose();
    },
  };
}

/** Changes when the explanation may have changed. */
function mark(store, key) {
  const gang = store.picture?.gangs?.[key];
  return JSON.stringify([gang, store.picture?.sets?.[gang?.set]?.revision]);
}

function content(store, key, reading) {
  const [namespace, own] = splitKey(key);
  const gang = store.picture?.gangs?.[key];
  const { explanation, unread } = reading.data ?? {};
  const waits = explanation ? explanation.waits : Boolean(gang?.waiting);
  return [
    breadcrumb(["Waiting", link("waiting")], [namespace, link("waiting", { namespace })], [own]),
    h("header", { class: "detail-head", "data-key": "head" },
      h("div", { class: "detail-title" }, h("h1", null, own), gang && state(gang.phase)),
      h("div", { class: "actions" },
        gang && h("a", { class: "button", href: mapGangLink(key, explanation?.gangs?.[0]?.level) }, "Show on map"),
        gang && h("a", { class: "button", href: setLink(gang.set) }, "Show workload"))),
    notes(gang, reading, waits, Boolean(store.picture)),
    unreadNote(unread),
    facts(gang, explanation),
    explanation ? parts(explanation, store.picture) : !reading.problem && loading(),
  ];
}

function notes(gang, reading, waits, known) {
  if (reading.gone && !gang) return banner("warn", "This gang does not exist any more, or you may not see it.", h("a", { href: link("waiting") }, "All gangs that wait"));
  if (reading.problem) return failure(reading.problem);
  if (known && !gang && reading.data) return banner("warn", "This gang was deleted. The page shows what was known before.");
  if (reading.data && !waits) return banner("good", "This gang does not wait any more.");
  return null;
}

function loading() {
  return h("div", { class: "card part skeleton", role: "status", "data-key": "loading" },
    h("p", { class: "muted" }, "Asking the solver where the gang might go…"), h("div", { class: "skeleton-line" }), h("div", { class: "skeleton-line" }), h("div", { class: "skeleton-line" }));
}

function facts(gang, explanation) {
  const asked = explanation?.gangs?.[0];
  const closest = asked?.domains?.[0];
  if (!gang && !asked) return null;
  const since = gang?.waitingSince || gang?.waiting?.since;
  return h("dl", { class: "tiles", "data-key": "facts" },
    fact("Needs", plural(asked?.pods ?? gang?.pods ?? 0, "pod"),
      h("span", { class: "tile-more" }, closest?.need ? `${closest.need} ${closest.resource}` : `${gang?.gpus ?? 0} GPUs`)),
    fact("Where", asked ? (asked.level ? `in one ${asked.level}` : "anywhere") : explanation ? "–" : "…"),
    fact("Ready", `${gang?.ready ?? 0} of ${gang?.pods ?? asked?.pods ?? 0} pods`),
    since && fact("Waits since", age(since)));
}

function parts(found, picture) {
  const gangs = found.gangs ?? [];
  const many = gangs.length > 1;
  const named = (title, gang) => (many ? `${title}: ${gang.gang}` : title);
  return [
    section("reasons", "Why it waits", reasons(found.reasons, picture)),
    ...gangs.map((gang, index) => [
      section(`domains-${index}`, named("Where it is missing", gang), domainTable(gang)),
      section(`remedies-${index}`, named("What would help, each alone", gang), remedyList(gang)),
      section(`holders-${index}`, named("What holds the rest", gang), holderTable(gang)),
    ]),
    found.waits && !gangs.length && !found.reasons?.length && empty("No reason is known yet", "The operator writes one within seconds.", "clock"),
    section("containers", "Containers that do not run", containers(found.containers)),
    section("events", "Warnings", events(found.events, picture)),
    more(found.more),
  ];
}

function more(left) {
  const text = Object.entries(left ?? {}).filter(([, count]) => count > 0).map(([what, count]) => `${count} ${what}`).join(", ");
  return text ? h("p", { class: "note", "data-key": "more" }, `Left out: ${text}`) : null;
}
