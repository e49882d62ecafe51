/** A list of objects: filters above, columns that sort, and cards instead of columns on a narrow screen. */

import { h } from "../../dom.js";
import { countUp } from "./ages.js";
import { plural } from "./badges.js";
import { icon } from "./icons.js";
import { rememberInAddress } from "./links.js";
import { show } from "./morph.js";
import { unreadNote } from "./sections.js";
import { repaint } from "./repaint.js";

/** More rows than this are shown on demand: drawing them takes time. */
const ROWS = 200;

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {(row: object) => (Node|string)} cell
 * @property {(row: object) => (string|number)} [value] to sort by; without it the column does not sort
 * @property {string} [kind] `number`, `wide` or `main`, for its look
 *
 * @typedef {object} Choice
 * @property {string} key in the address
 * @property {string} title
 * @property {string} all the words for no filter
 * @property {(row: object) => string} value
 *
 * @typedef {object} Description
 * @property {string} route
 * @property {string} title
 * @property {string} thing what a row is, for `3 gangs`
 * @property {() => object[]} rows each has a `key`
 * @property {Column[]} columns
 * @property {Choice[]} choices filters by one value
 * @property {(row: object) => string} text what a search looks into
 * @property {string} order the key of the column that sorts at first, with `-` for descending
 * @property {(filtered: boolean) => Node} nothing what is shown without rows
 * @property {() => string} [subtitle]
 */

/**
 * @param {{picture: object|null}} store
 * @param {URLSearchParams} query
 * @param {Description} about
 * @returns {{element: HTMLElement, navigate: (route: {query: URLSearchParams}) => void, update: () => void, dispose: () => void}}
 */
export function listing(store, query, about) {
  const chosen = {};
  const choose = (values) => {
    for (const key of ["q", "sort", ...about.choices.map((choice) => choice.key)]) chosen[key] = values.get(key) ?? "";
    search.value = chosen.q;
  };
  let limit = ROWS;

  const search = h("input", { type: "search", class: "search-field", "aria-label": `Search ${about.thing}s`, placeholder: "Search", autocomplete: "off", spellcheck: "false" });
  const selects = about.choices.map(({ key, title }) => h("select", { "aria-label": title, "data-choice": key }));
  const count = h("p", { class: "count", "aria-live": "polite" });
  const body = h("div", { class: "listing-body" });
  const element = h("section", { class: "page listing" },
    h("div", { class: "page-head" }, h("h1", null, about.title), count),
    h("div", { class: "list-tools", role: "group", "aria-label": "Filters" }, h("span", { class: "list-search" }, icon("search"), search), selects),
    body);

  const draw = () => {
    const all = about.rows();
    about.choices.forEach((choice, index) => showOptions(selects[index], choice, chosen[choice.key], all));
    const found = sorted(all.filter((row) => matches(row, about, chosen)), about, chosen.sort || about.order);
    const filtered = found.length !== all.length;
    const shown = filtered ? `${found.length} of ${plural(all.length, about.thing)}` : plural(all.length, about.thing);
    const line = [shown, about.subtitle?.()].filter(Boolean).join(" · ");
    if (count.textContent !== line) count.textContent = line;
    show(body,
      unreadNote(store.picture?.unread ?? []),
      found.length ? table(about, found.slice(0, limit), chosen.sort || about.order) : about.nothing(filtered),
      found.length > limit && h("button", { type: "button", class: "button more-rows", "data-action": "more" }, `Show ${Math.min(ROWS, found.length - limit)} more of ${found.length}`));
  };
  const paint = repaint(draw);
  const changed = () => {
    limit = ROWS;
    rememberInAddress(about.route, chosen);
    paint.now();
  };

  search.addEventListener("input", () => {
    chosen.q = search.value.trim();
    changed();
  });
  element.addEventListener("change", (event) => {
    const key = event.target.dataset?.choice;
    if (!key) return;
    chosen[key] = event.target.value;
    changed();
  });
  element.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort], button[data-action]");
    if (!button) return;
    if (button.dataset.sort) {
      chosen.sort = nextOrder(button.dataset.sort, chosen.sort || about.order);
      changed();
    } else {
      limit += ROWS;
      paint.now();
    }
  });
  const stop = countUp(element, store);
  choose(query);
  draw();
  return {
    element,
    navigate(route) {
      choose(route.query);
      paint.now();
    },
    update: paint.request,
    dispose() {
      stop();
      paint.cancel();
    },
  };
}

function matches(row, about, chosen) {
  return about.choices.every(({ key, value }) => !chosen[key] || value(row) === chosen[key])
    && (!chosen.q || about.text(row).toLowerCase().includes(chosen.q.toLowerCase()));
}

/** Rows by a column; equal ones by their key, so that none of them moves without a reason. */
function sorted(rows, about, order) {
  const down = order.startsWith("-") ? -1 : 1;
  const column = about.columns.find(({ key }) => key === order.replace("-", ""));
  const value = column?.value ?? ((row) => row.key);
  return rows.map((row) => [value(row), row]).sort(([one, a], [other, b]) =>
    down * compare(one, other) || compare(a.key, b.key)).map(([, row]) => row);
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}

function nextOrder(key, order) {
  return order === key ? `-${key}` : key;
}

function table(about, rows, order) {
  const head = about.columns.map((column) => {
    if (!column.value) return h("th", { scope: "col", class: column.kind }, column.title);
    const direction = { [column.key]: "ascending", [`-${column.key}`]: "descending" }[order];
    return h("th", { scope: "col", class: column.kind, "aria-sort": direction },
      h("button", { type: "button", "data-sort": column.key }, column.title, icon("chevron")));
  });
  const line = (row) => h("tr", { "data-key": row.key }, about.columns.map((column) =>
    h("td", { class: column.kind, "data-title": column.title }, column.cell(row))));
  return h("div", { class: "card table-card" },
    h("table", { class: "table rows", "aria-label": about.title },
      h("thead", null, h("tr", null, head)), h("tbody", null, rows.map(line))));
}

/** The values that rows have, and the chosen one, also if no row has it now. */
function showOptions(select, choice, chosen, rows) {
  const values = [...new Set([...rows.map(choice.value), chosen])].filter(Boolean).sort(compare);
  if (select.dataset.values === values.join("\n") && select.value === chosen) return;
  select.dataset.values = values.join("\n");
  select.replaceChildren(h("option", { value: "" }, choice.all), ...values.map((value) => h("option", { value }, value)));
  select.value = chosen;
}
