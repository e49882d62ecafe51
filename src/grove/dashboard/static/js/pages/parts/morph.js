/**
 * Changes what the page shows into what it should show, element by element.
 *
 * Pages describe their whole content on every change; elements that stay are kept, so that focus, scroll
 * position, selected text and open parts survive. Listeners therefore belong to the element around it.
 */

/**
 * Gives `parent` these children. Children with the same `data-key`, and otherwise those of the same tag in
 * the same order, are changed in place.
 * @param {Element} parent
 * @param {(Node|string|null|undefined|false)[]} children
 */
export function show(parent, ...children) {
  const focused = document.activeElement;
  const fresh = document.createElement(parent.tagName);
  fresh.append(...children.flat(Infinity).filter((child) => child || child === 0));
  morphChildren(parent, fresh);
  // An element that was moved has lost the focus, although it is still there.
  if (focused && focused !== document.activeElement && parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

function morphChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  const keyed = new Map();
  for (const child of old.childNodes) {
    const key = keyOf(child);
    if (key !== null) keyed.set(key, child);
  }
  const keep = new Set(wanted.map(keyOf).filter((key) => key !== null));
  for (const [key, child] of keyed) {
    if (!keep.has(key)) child.remove();
  }
  let next = old.firstChild;
  for (const child of wanted) {
    const key = keyOf(child);
    const same = key === null ? unkeyed(next, child) : keyed.get(key);
    if (same && similar(same, child)) {
      if (same === next) next = next.nextSibling;
      else old.insertBefore(same, next);
      morph(same, child);
    } else {
      old.insertBefore(child, next);
      if (same) {
        if (same === next) next = next.nextSibling;
        same.remove();
      }
    }
  }
  while (next) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
}

function unkeyed(node, fresh) {
  return node && keyOf(node) === null && similar(node, fresh) ? node : null;
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? (node.dataset?.key ?? null) : null;
}

function similar(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !ownedByReader(old, name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (ownedByReader(old, name) || old.getAttribute(name) === value) continue;
    // The content security policy refuses the attribute `style`; the property is allowed.
    if (name === "style") old.style.cssText = fresh.style.cssText;
    else old.setAttribute(name, value);
  }
}

/** Whether a reader changes the attribute, so that a change of the data leaves it alone. */
function ownedByReader(element, name) {
  return name === "open" && element.nodeName === "DETAILS";
}
