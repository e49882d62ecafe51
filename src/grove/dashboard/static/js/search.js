/** The search box: a combobox with suggestions of the server. */

import { get } from "./api.js";
import { h, icon, replaceChildren, setText } from "./dom.js";

/** Typing is not interrupted by an answer for each key. */
const DELAY = 150;
const MAGNIFIER = "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.7 3.7";

/**
 * The search box.
 * @returns {{element: HTMLElement, focus: () => void}}
 */
export function searchBox() {
  const input = h("input", {
    type: "search", class: "search-input", placeholder: "Search", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-label": "Search sets, gangs, pods, hosts and domains", "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": "search-hits", maxlength: "253",
  });
  const list = h("ul", { id: "search-hits", class: "search-hits", role: "listbox", "aria-label": "Found", hidden: true });
  const spoken = h("span", { class: "visually-hidden", role: "status" });
  const element = h("div", { class: "search", role: "search", "aria-label": "Whole cluster" }, icon(MAGNIFIER), input, h("kbd", { class: "search-key", "aria-hidden": "true" }, "/"), list, spoken);
  new Suggestions(input, list, spoken);
  return { element, focus: () => (input.focus(), input.select()) };
}

class Suggestions {
  #input;
  #list;
  #spoken;
  #hits = [];
  #active = -1;
  #timer = 0;
  #request = null;

  constructor(input, list, spoken) {
    this.#input = input;
    this.#list = list;
    this.#spoken = spoken;
    input.addEventListener("input", () => this.#ask());
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("blur", () => this.#close());
    input.addEventListener("focus", () => this.#hits.length > 0 && this.#open());
    // The list must not take the focus from the input before the click arrives.
    list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  #ask() {
    clearTimeout(this.#timer);
    this.#request?.abort();
    const text = this.#input.value.trim();
    if (text === "") {
      this.#show([], "");
      return;
    }
    this.#timer = setTimeout(() => this.#read(text), DELAY);
  }

  async #read(text) {
    this.#request = new AbortController();
    try {
      const { hits } = await get("/api/search", { q: text }, { signal: this.#request.signal });
      this.#show(hits ?? [], hits?.length ? "" : "nothing found");
    } catch (error) {
      if (error.name !== "AbortError") {
        this.#show([], error.message);
      }
    }
  }

  #show(hits, message) {
    this.#hits = hits;
    this.#active = -1;
    this.#input.removeAttribute("aria-activedescendant");
    const rows = hits.map((hit, index) => this.#row(hit, index));
    replaceChildren(this.#list, rows, message && h("li", { class: "search-message", role: "option", "aria-disabled": "true", "aria-selected": "false" }, message));
    setText(this.#spoken, hits.length ? `${hits.length} found` : message);
    if (hits.length || message) {
      this.#open();
    } else {
      this.#close();
    }
  }

  #row(hit, index) {
    return h(
      "li",
      {
        id: `search-hit-${index}`, role: "option", "aria-selected": "false", class: "search-hit",
        on: { click: () => this.#choose(index), mousemove: () => this.#activate(index) },
      },
      h("span", { class: "search-kind" }, hit.kind),
      h("span", { class: "search-name" }, hit.name),
      h("span", { class: "search-detail" }, [hit.namespace, hit.detail].filter(Boolean).join(" · ")),
    );
  }

  #key(event) {
    const count = this.#hits.length;
    if (event.key === "Escape") {
      if (this.#list.hidden && this.#input.value === "") {
        this.#input.blur();
      } else {
        this.#input.value = "";
        this.#ask();
      }
    } else if (event.key === "Enter") {
      this.#choose(Math.max(0, this.#active));
    } else if (event.key === "ArrowDown" && count) {
      this.#open();
      this.#activate((this.#active + 1) % count);
    } else if (event.key === "ArrowUp" && count) {
      this.#open();
      this.#activate((this.#active - 1 + count) % count);
    } else {
      return;
    }
    event.preventDefault();
  }

  #activate(index) {
    this.#list.children[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = index;
    const row = this.#list.children[index];
    row.setAttribute("aria-selected", "true");
    row.scrollIntoView({ block: "nearest" });
    this.#input.setAttribute("aria-activedescendant", row.id);
  }

  #choose(index) {
    const hit = this.#hits[index];
    // Only links within this page: the answer decides what is shown, not where the browser goes.
    if (hit?.link?.startsWith("#/")) {
      location.hash = hit.link;
      this.#input.value = "";
      this.#hits = [];
      this.#close();
      this.#input.blur();
    }
  }

  #open() {
    this.#list.hidden = false;
    this.#input.setAttribute("aria-expanded", "true");
  }

  #close() {
    this.#list.hidden = true;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
  }
}
