/** Builds elements. Text only ever becomes text nodes: nothing from the cluster is parsed as HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element.
 * @param {string} tag
 * @param {Object<string, any> | null} [props] attributes; `class`, `dataset`, `on` (listeners by event) and `style`
 *   (CSS properties, set through the CSSOM because the content security policy forbids style attributes) are special;
 *   `value`, `checked` and `disabled` are set as properties. True sets an empty attribute; false, null and undefined none.
 * @param {...any} children nodes, strings, numbers or arrays of these; null, undefined and false are left out
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  setProps(element, props ?? {});
  element.append(...nodesOf(children));
  return element;
}

/**
 * An SVG icon of 16 by 16 units, hidden from assistive technology.
 * @param {...string} paths the data of its paths
 * @returns {SVGElement}
 */
export function icon(...paths) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(name, value);
  }
  for (const data of paths) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", data);
    svg.append(path);
  }
  return svg;
}

/**
 * Replaces all children of an element.
 * @param {Element} element
 * @param {...any} children as of `h`
 * @returns {Element}
 */
export function replaceChildren(element, ...children) {
  element.replaceChildren(...nodesOf(children));
  return element;
}

/**
 * Sets the text of an element if it differs: assistive technology and observers then see only changes.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

function setProps(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (name === "dataset") {
      Object.assign(element.dataset, value);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value)) {
        element.style.setProperty(property, text);
      }
    } else if (name === "value" || name === "checked" || name === "disabled") {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

function nodesOf(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
