/** Starts the dashboard: the frame of the page, its routes, the connection. */

import { post } from "./api.js";
import { Connection } from "./connection.js";
import { h, replaceChildren } from "./dom.js";
import { header } from "./header.js";
import { parse } from "./router.js";
import { shortcuts } from "./shortcuts.js";
import { signInForm } from "./sign_in.js";
import { Store } from "./store.js";
import { startTheme } from "./theme.js";

/** By route: its title and its module. With parts after the name, the second one. */
const ROUTES = {
  map: [["Map", () => import("./map/page.js")]],
  waiting: [["Waiting gangs", () => import("./pages/waiting.js")], ["Waiting gang", () => import("./pages/waiting_detail.js")]],
  workloads: [["Workloads", () => import("./pages/workloads.js")], ["Workload", () => import("./pages/workload.js")]],
  events: [["Events", () => import("./pages/events.js")]],
};

/** Shows the page of the present link, and passes changes to it. */
class Pages {
  #store;
  #content;
  #header;
  #page = null;
  #key = "";
  #load = 0;

  constructor(store, content, head) {
    this.#store = store;
    this.#content = content;
    this.#header = head;
    store.addEventListener("change", (event) => this.#changed(event.detail));
    addEventListener("hashchange", () => this.show());
  }

  /** Shows the page of the present link. */
  async show() {
    const route = parse(location.hash);
    const choices = Object.hasOwn(ROUTES, route.name) ? ROUTES[route.name] : undefined;
    this.#header.showRoute(route.name);
    if (choices === undefined) {
      this.#replace(null, notice("There is no such page.", h("a", { href: "#/map" }, "Go to the map")));
      return;
    }
    if (this.#store.picture === null) {
      this.#replace(null, this.#store.status === "signed-out" ? null : h("div", { class: "notice" }, h("h1", null, "Loading"), h("p", { role: "status" }, "The picture of the cluster is being read.")));
      return;
    }
    const [title, module] = choices[Math.min(route.path.length, choices.length - 1)];
    const key = [route.name, ...route.path].join("/");
    document.title = [...route.path].reverse().concat(title, "Grove").join(" · ");
    if (this.#page?.navigate && key === this.#key) {
      this.#page.navigate(route);
      return;
    }
    await this.#open(module, route, key);
  }

  /** Removes the page, for example when the user signs out. */
  close() {
    this.#replace(null, null);
  }

  async #open(module, route, key) {
    const load = ++this.#load;
    const moved = this.#key !== "";
    let page;
    try {
      const { page: make } = await module();
      if (load !== this.#load || this.#store.picture === null) {
        return;
      }
      page = make(this.#store, { name: route.name, path: route.path, query: route.query });
    } catch (error) {
      console.error(error);
      this.#replace(null, notice("This page could not be shown.", error.message, "Reload the page; a newer dashboard may be running."));
      return;
    }
    this.#replace(page, page.element);
    this.#key = key;
    if (moved) {
      this.#content.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }

  #changed(delta) {
    if (this.#page === null || this.#store.picture === null) {
      this.show();
    } else {
      this.#page.update(delta);
    }
  }

  #replace(page, element) {
    this.#page?.dispose();
    this.#page = page;
    this.#key = page === null ? "" : this.#key;
    replaceChildren(this.#content, element);
  }
}

function notice(title, ...lines) {
  return h("div", { class: "notice" }, h("h1", null, title), lines.map((line) => h("p", null, line)));
}

function start() {
  startTheme();
  const store = new Store();
  const connection = new Connection(store);
  const content = h("main", { id: "content", tabindex: "-1" });
  const signIn = h("main", { hidden: true });
  const dialog = shortcuts(() => head.focusSearch());
  const signOut = async () => {
    try {
      await post("/api/sign-out", {});
    } catch (problem) {
      if (problem.status !== 401) {
        head.showProblem(`You are still signed in: ${problem.message}. Try again.`);
        return;
      }
    }
    connection.signOut();
  };
  const head = header(store, { signOut, showShortcuts: () => dialog.show() });
  const pages = new Pages(store, content, head);
  replaceChildren(document.getElementById("app"), head.element, head.banner, content, signIn, dialog.element);
  document.getElementById("skip-link").addEventListener("click", (event) => {
    event.preventDefault();
    content.focus();
  });

  store.addEventListener("status", () => {
    const out = store.status === "signed-out";
    content.hidden = out;
    if (out && signIn.hidden) {
      document.title = "Sign in · Grove";
      pages.close();
      replaceChildren(signIn, signInForm(() => connection.retry()));
      signIn.hidden = false;
      signIn.querySelector("input").focus();
    } else if (!out) {
      signIn.hidden = true;
      replaceChildren(signIn);
    }
  });
  pages.show();
  connection.start();
}

start();
