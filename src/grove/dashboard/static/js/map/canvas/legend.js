/** What the marks of the map mean. */

import { h } from "../../dom.js";
import { PALETTE } from "../../colours.js";
import { isDark } from "../../theme.js";
import { corner, cross, foreignCell, freeCell, gangCell, hatchPattern, laterBar, readInks, reservedCell, rounded, stripes } from "./marks.js";

const SIZE = 16;
const ENTRIES = [
  ["gang", "gang", (ctx, inks, colours) => [0, 1, 2].forEach((index) => gangCell(ctx, 1 + index * 13, 2, 12, 12, { colour: colours[index], texture: index }, inks))],
  ["reserved", "reserved", (ctx, inks, colours) => reservedCell(ctx, 2, 2, 12, 12, { colour: colours[0], texture: 0 })],
  ["later", "reserved when free", (ctx, inks, colours) => {
    gangCell(ctx, 2, 0, 12, 10, { colour: colours[1], texture: 0 }, inks);
    laterBar(ctx, 2, 16, 12, 5, { colour: colours[0] });
  }],
  ["free", "free", (ctx, inks) => freeCell(ctx, 2, 2, 12, 12, inks)],
  ["foreign", "foreign load", (ctx, inks, colours, hatch) => foreignCell(ctx, 2, 2, 12, 12, inks, hatch)],
  ["cordoned", "cordoned", (ctx, inks) => onHost(ctx, inks, () => stripes(ctx, 1, 1, 14, 14, inks))],
  ["not-ready", "not ready", (ctx, inks) => onHost(ctx, inks, () => cross(ctx, 1, 1, 14, 14, inks))],
  ["tainted", "tainted", (ctx, inks) => onHost(ctx, inks, () => corner(ctx, 1, 1, 14, 14, inks))],
  ["partition", "NVLink partition", (ctx, inks) => {
    ctx.fillStyle = inks.partition;
    ctx.strokeStyle = inks["partition-border"];
    rounded(ctx, 1.5, 1.5, 13, 13, 3);
    ctx.fill();
    ctx.stroke();
  }],
];

/**
 * The legend.
 * @returns {{element: HTMLElement, update: () => void}} update: the colours of the theme have changed
 */
export function legend() {
  const samples = ENTRIES.map(([name, text, draw]) => {
    const width = name === "gang" ? 39 : SIZE;
    return { draw, width, canvas: h("canvas", { "aria-hidden": "true", class: "legend-sample" }), text };
  });
  const element = h(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    samples.map(({ canvas, text }) => h("li", null, canvas, text)),
  );
  const update = () => {
    const inks = readInks(element);
    const colours = isDark() ? PALETTE.dark : PALETTE.light;
    const ratio = devicePixelRatio || 1;
    for (const { canvas, draw, width } of samples) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(SIZE * ratio);
      canvas.style.setProperty("width", `${width}px`);
      canvas.style.setProperty("height", `${SIZE}px`);
      const ctx = canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw(ctx, inks, colours, hatchPattern(ctx, inks, ratio));
    }
  };
  return { element, update };
}

function onHost(ctx, inks, draw) {
  ctx.fillStyle = inks["free-border"];
  rounded(ctx, 0.5, 0.5, 15, 15, 3);
  ctx.fill();
  ctx.fillStyle = inks.host;
  rounded(ctx, 1.5, 1.5, 13, 13, 2);
  ctx.fill();
  draw();
}
