/** The marks of cells and hosts, on a canvas. The legend and the map use the same ones. */

const HATCH = 5;

/** @typedef {Object<string, string>} Inks colours of the theme by name: see `readInks` */

const INKS = [
  "background", "box", "box-inner", "box-border", "box-strong", "host", "text", "muted", "free", "free-border", "free-small",
  "foreign", "foreign-line", "stripe", "cross", "taint", "partition", "partition-border", "veil", "texture", "selected", "focus",
];

/**
 * The colours of the present theme, as the style sheet has them (`--map-…`).
 * @param {HTMLElement} element within the page
 * @returns {Inks}
 */
export function readInks(element) {
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const inks = {};
  for (const name of INKS) {
    // A custom property may be an expression such as light-dark(); as a colour it is computed.
    probe.style.setProperty("color", `var(--map-${name})`);
    inks[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return inks;
}

/** A GPU of a gang. The texture tells gangs of the same colour apart. */
export function gangCell(ctx, x, y, w, h, look, inks) {
  ctx.fillStyle = look.colour;
  cellShape(ctx, x, y, w, h);
  texture(ctx, x, y, w, h, look.texture, inks.texture);
}

function texture(ctx, x, y, w, h, number, ink) {
  if (number === 0 || h < 7) {
    return;
  }
  ctx.fillStyle = ink;
  const size = Math.max(2, Math.round(h / 4));
  if (number === 1) {
    ctx.fillRect(x + (w - size) / 2, y + (h - size) / 2, size, size);
  } else {
    ctx.fillRect(x + w * 0.2, y + h / 2 - 0.75, w * 0.6, 1.5);
  }
}

/** A GPU that is reserved for a gang: its pods are nominated, and not bound yet. */
export function reservedCell(ctx, x, y, w, h, { colour, texture: number }) {
  ctx.fillStyle = colour;
  ctx.globalAlpha *= 0.28;
  cellShape(ctx, x, y, w, h);
  ctx.globalAlpha /= 0.28;
  ctx.strokeStyle = colour;
  ctx.lineWidth = h >= 10 ? 1.5 : 1;
  ctx.setLineDash(h >= 10 ? [3, 2] : [1, 1]);
  ctx.strokeRect(x + 0.75, y + 0.75, w - 1.5, h - 1.5);
  ctx.setLineDash([]);
  texture(ctx, x, y, w, h, number, colour);
}

/** A dashed bar at the bottom of a host: GPUs that are used now are reserved for a gang. */
export function laterBar(ctx, x, bottom, w, room, { colour }) {
  const thick = room >= 5 ? 3 : room >= 2 ? 2 : 1;
  ctx.strokeStyle = colour;
  ctx.lineWidth = thick;
  ctx.setLineDash(room >= 5 ? [4, 2] : [2, 1]);
  ctx.beginPath();
  ctx.moveTo(x, bottom - Math.max(thick, room) / 2);
  ctx.lineTo(x + w, bottom - Math.max(thick, room) / 2);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** A free GPU. */
export function freeCell(ctx, x, y, w, h, inks) {
  if (h < 5) {
    ctx.fillStyle = inks["free-small"];
    ctx.fillRect(x, y, w, h);
    return;
  }
  ctx.fillStyle = inks["free-border"];
  cellShape(ctx, x, y, w, h);
  ctx.fillStyle = inks.free;
  cellShape(ctx, x + 1, y + 1, w - 2, h - 2);
}

/** A GPU that pods of no visible gang use. */
export function foreignCell(ctx, x, y, w, h, inks, hatch) {
  ctx.fillStyle = inks.foreign;
  cellShape(ctx, x, y, w, h);
  if (h >= 4 && hatch !== null) {
    ctx.fillStyle = hatch;
    cellShape(ctx, x, y, w, h);
  }
}

/** The hatching of foreign load, as sharp as the screen. */
export function hatchPattern(ctx, inks, ratio) {
  const size = Math.round(HATCH * ratio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.strokeStyle = inks["foreign-line"];
  pen.lineWidth = Math.max(1, ratio * 1.1);
  for (const shift of [-size, 0, size]) {
    pen.beginPath();
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
    pen.stroke();
  }
  const pattern = ctx.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

/** Diagonal stripes over a cordoned host. */
export function stripes(ctx, x, y, w, h, inks) {
  const step = h >= 14 ? 8 : 5;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.strokeStyle = inks.stripe;
  ctx.lineWidth = h >= 14 ? 2 : 1.2;
  ctx.beginPath();
  for (let left = x - h; left < x + w; left += step) {
    ctx.moveTo(left, y + h);
    ctx.lineTo(left + h, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** A cross over a host that is not ready. */
export function cross(ctx, x, y, w, h, inks) {
  const side = Math.max(4, Math.min(w, h) - 4);
  const left = x + (w - side) / 2;
  const top = y + (h - side) / 2;
  for (const [colour, width] of [[inks.host, side >= 12 ? 5 : 2.5], [inks.cross, side >= 12 ? 2.5 : 1.5]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(left, top);
    ctx.lineTo(left + side, top + side);
    ctx.moveTo(left + side, top);
    ctx.lineTo(left, top + side);
    ctx.stroke();
  }
}

/** A marked corner of a host with taints. */
export function corner(ctx, x, y, w, h, inks) {
  const side = Math.min(10, Math.max(4, h / 2));
  ctx.fillStyle = inks.taint;
  ctx.beginPath();
  ctx.moveTo(x + w - side, y);
  ctx.lineTo(x + w, y);
  ctx.lineTo(x + w, y + side);
  ctx.closePath();
  ctx.fill();
}

/** A rectangle with rounded corners where there is room for them; filled. */
export function cellShape(ctx, x, y, w, h) {
  if (h < 9) {
    ctx.fillRect(x, y, w, h);
  } else {
    rounded(ctx, x, y, w, h, 2);
    ctx.fill();
  }
}

/** The path of a rectangle with rounded corners. */
export function rounded(ctx, x, y, w, h, radius) {
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
}
