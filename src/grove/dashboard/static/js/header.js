/** The head of the page: name, pages, search, the state of the picture, the user. */

import { h, icon, replaceChildren, setText } from "./dom.js";
import { link } from "./router.js";
import { searchBox } from "./search.js";
import { chosenTheme, nextTheme } from "./theme.js";
import { age, ageText, secondsSince } from "./time.js";

const PAGES = [["map", "Map"], ["waiting", "Waiting"], ["workloads", "Workloads"], ["events", "Events"]];
const SUN = "M8 4.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13";
const MOON = "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z";
const SYSTEM = "M2 3h12v8H2zM6 13.5h4M8 11v2.5";

/** @typedef {{kind: "live" | "snapshot" | "loading" | "warning" | "error", text: string}} PictureState */

/**
 * What the state of the picture is, in a few words. Pure.
 * @param {{picture: Object | null, status: string, problem: string, heardAt: number}} store
 * @param {number} localNow milliseconds by the clock of this browser
 * @param {number} serverNow milliseconds by the clock of the server
 * @returns {PictureState}
 */
export function pictureState(store, localNow, serverNow) {
  const picture = store.picture;
  if (store.status === "signed-out") {
    return { kind: "loading", text: "signed out" };
  }
  if (picture === null) {
    return store.problem ? { kind: "error", text: "not connected" } : { kind: "loading", text: "loading" };
  }
  if (store.status === "stale") {
    const old = ageText(Math.floor((localNow - store.heardAt) / 1000));
    return { kind: "error", text: `reconnecting to the dashboard, picture ${old} old` };
  }
  if (!picture.source.live) {
    // The clock of the picture stands at the time of the snapshot.
    const taken = age(picture.source.takenAt, localNow);
    return { kind: "snapshot", text: taken ? `snapshot, ${taken} old` : "snapshot" };
  }
  if (!picture.connection.connected) {
    const old = age(picture.connection.since, serverNow) || "of unknown age";
    return { kind: "error", text: `picture ${old} old: API server away` };
  }
  if (picture.operator !== null && !picture.operator.alive) {
    return { kind: "warning", text: operatorAway(picture.operator, serverNow) };
  }
  return { kind: "live", text: "live" };
}

/**
 * Everything that is away, in whole sentences. Pure.
 * @param {{picture: Object | null, status: string, problem: string, heardAt: number}} store
 * @param {number} localNow milliseconds by the clock of this browser
 * @param {number} serverNow milliseconds by the clock of the server
 * @returns {string[]}
 */
export function pictureProblems(store, localNow, serverNow) {
  const picture = store.picture;
  if (store.status === "signed-out") {
    return [];
  }
  if (picture === null) {
    return store.problem ? [`The dashboard is not connected: ${store.problem}`] : [];
  }
  if (store.status === "stale") {
    const old = ageText(Math.floor((localNow - store.heardAt) / 1000));
    return [`The server of the dashboard is away; this picture is ${old} old${because(store.problem)}`];
  }
  if (!picture.source.live) {
    return [];
  }
  const { connection, operator } = picture;
  const old = age(connection.since, serverNow);
  return [
    !connection.connected && `The API server is away; this picture is ${old ? `${old} old` : "of unknown age"}${because(connection.problem)}`,
    operator !== null && !operator.alive && operatorSentence(operator, connection.connected, serverNow),
  ].filter(Boolean);
}

function because(problem) {
  return problem ? `: ${problem}` : "";
}

/** While the API server is away, the Lease is not read: then only its last renewal is known. */
function operatorSentence(operator, connected, serverNow) {
  if (!operator.lease) {
    return "The operator is away: it has no Lease; gangs are neither placed nor repaired";
  }
  const away = awaySeconds(operator, serverNow);
  const since = away === null ? "an unknown time" : ageText(away);
  return connected
    ? `The operator is away: it has not renewed Lease ${operator.lease} for ${since}; gangs are neither placed nor repaired`
    : `The operator was last seen ${since} ago (Lease ${operator.lease})`;
}

function awaySeconds(operator, serverNow) {
  return secondsSince(operator.renewed, serverNow) ?? operator.renewedSecondsAgo ?? null;
}

function operatorAway(operator, serverNow) {
  if (!operator.lease) {
    return "operator away: it has no Lease";
  }
  const away = awaySeconds(operator, serverNow);
  return away === null ? "operator away" : `operator away since ${ageText(away)}`;
}

/**
 * The header.
 * @param {import("./store.js").Store} store
 * @param {{signOut: () => void, showShortcuts: () => void}} actions
 * @returns {{element: HTMLElement, banner: HTMLElement, showRoute: (name: string) => void, focusSearch: () => void, showProblem: (text: string) => void}}
 */
export function header(store, actions) {
  const search = searchBox();
  const badge = h("span", { class: "badge", hidden: true });
  const links = new Map(PAGES.map(([name, title]) => [name, h("a", { href: link(name) }, title)]));
  links.get("waiting").append(badge);
  const source = h("span", { class: "source" });
  const pill = statePill(store);
  const user = h("div", { class: "user" });
  const problem = h("p", { class: "header-problem", role: "alert", hidden: true });
  const element = h(
    "header",
    { class: "app-header" },
    h("a", { class: "brand", href: link("map") }, h("img", { src: "/static/icon.svg", alt: "", width: 22, height: 22 }), "Grove"),
    h("nav", { "aria-label": "Pages" }, [...links.values()]),
    search.element,
    h("div", { class: "header-state" }, source, pill.element),
    h("div", { class: "header-actions" }, shortcutsButton(actions.showShortcuts), themeButton(), user),
    problem,
  );

  const update = () => {
    const picture = store.picture;
    pill.update();
    setText(source, picture?.source.name ?? "");
    source.title = sourceTitle(picture);
    const waiting = Object.values(picture?.gangs ?? {}).filter((gang) => gang.waiting !== null).length;
    badge.hidden = waiting === 0;
    replaceChildren(badge, String(waiting), h("span", { class: "visually-hidden" }, waiting === 1 ? " gang waits" : " gangs wait"));
    element.classList.toggle("signed-out", store.status === "signed-out");
    showUser(user, picture?.viewer ?? null, actions.signOut);
  };
  store.addEventListener("change", update);
  store.addEventListener("status", update);
  setInterval(pill.update, 1000);
  update();

  return {
    element,
    banner: pill.banner,
    focusSearch: search.focus,
    showProblem(text) {
      setText(problem, text);
      problem.hidden = false;
    },
    showRoute(name) {
      for (const [page, anchor] of links) {
        if (page === name) {
          anchor.setAttribute("aria-current", "page");
        } else {
          anchor.removeAttribute("aria-current");
        }
      }
    },
  };
}

/** The state counts up each second; assistive technology hears it only when it changes in kind. The banner has what the
 * pill has no room for. */
function statePill(store) {
  const text = h("span", { class: "pill-text" });
  const pill = h("span", { class: "pill", dataset: { state: "loading" } }, h("span", { class: "pill-dot" }), text);
  const spoken = h("span", { class: "visually-hidden", role: "status" });
  const banner = h("section", { class: "away-banner", "aria-label": "What is away", hidden: true });
  // The map fills the window: it leaves room for the banner.
  new ResizeObserver(() => document.documentElement.style.setProperty("--banner-height", `${banner.offsetHeight}px`)).observe(banner);
  let kind = "";
  const update = () => {
    const state = pictureState(store, Date.now(), store.now());
    pill.dataset.state = state.kind;
    pill.title = store.status === "stale" ? store.problem : "";
    setText(text, state.text);
    const problems = pictureProblems(store, Date.now(), store.now());
    banner.hidden = problems.length === 0;
    banner.dataset.state = state.kind;
    showLines(banner, problems);
    const now = `${state.kind} ${problems.length}`;
    if (now !== kind) {
      kind = now;
      setText(spoken, [state.text, ...problems].join(". "));
    }
  };
  return { element: h("span", { class: "pill-box" }, pill, spoken), banner, update };
}

/** One line for each text; lines that stay are not made again. */
function showLines(element, texts) {
  if (element.children.length !== texts.length) {
    replaceChildren(element, texts.map(() => h("p")));
  }
  texts.forEach((text, index) => setText(element.children[index], text));
}

function sourceTitle(picture) {
  if (picture === null) {
    return "";
  }
  const { name, live, serverVersion, takenAt } = picture.source;
  const version = serverVersion ? `, Kubernetes ${serverVersion}` : "";
  return live ? `API server ${name}${version}` : `snapshot of ${takenAt || "unknown time"} in ${name}${version}`;
}

function showUser(element, viewer, signOut) {
  const shown = JSON.stringify(viewer);
  if (element.dataset.shown === shown) {
    return;
  }
  element.dataset.shown = shown;
  if (!viewer?.signsIn) {
    replaceChildren(element);
    return;
  }
  replaceChildren(
    element,
    h("span", { class: "user-name", title: viewer.name }, viewer.name),
    h("button", { type: "button", class: "button quiet", on: { click: signOut } }, "Sign out"),
  );
}

function shortcutsButton(show) {
  return h("button", { type: "button", class: "button icon-button shortcuts-button", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)", on: { click: show } }, "?");
}

function themeButton() {
  const button = h("button", { type: "button", class: "button icon-button" });
  const show = () => {
    const choice = chosenTheme();
    button.setAttribute("aria-label", `Colours: ${choice}`);
    button.title = `Colours: ${choice}`;
    replaceChildren(button, icon({ system: SYSTEM, light: SUN, dark: MOON }[choice]));
  };
  button.addEventListener("click", () => {
    nextTheme();
    show();
  });
  show();
  return button;
}
