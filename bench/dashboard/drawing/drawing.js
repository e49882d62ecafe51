// The same rectangles on a canvas and as SVG: nodes of 8 cells, 12 nodes a row. A canvas is as large as the
// window and draws what is visible; the elements of an SVG scroll with the page.
const CELL = 12;
const GAP = 2;
const PER_NODE = 8;
const NODES_A_ROW = 12;
const ROW = 20;
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];
const SVG = "http://www.w3.org/2000/svg";

export function cells(count) {
  return Array.from({ length: count }, (_, i) => {
    const node = Math.floor(i / PER_NODE);
    const column = node % NODES_A_ROW;
    return {
      x: column * (PER_NODE * (CELL + GAP) + 8) + (i % PER_NODE) * (CELL + GAP),
      y: Math.floor(node / NODES_A_ROW) * ROW,
      colour: COLOURS[Math.floor(i / 24) % COLOURS.length],
    };
  });
}

const height = (all) => all.at(-1).y + ROW;
class Canvas {
  constructor(room, all) {
    this.all = all;
    room.style.height = `${height(all)}px`;
    this.canvas = room.appendChild(document.createElement("canvas"));
    Object.assign(this.canvas.style, { position: "sticky", top: "0", display: "block" });
    this.canvas.width = innerWidth;
    this.canvas.height = innerHeight;
    this.context = this.canvas.getContext("2d");
  }

  draw() {
    const { context, canvas, all } = this;
    context.clearRect(0, 0, canvas.width, canvas.height);
    const perRow = NODES_A_ROW * PER_NODE;
    const first = Math.max(0, Math.floor(scrollY / ROW)) * perRow;
    const last = Math.min(all.length, (Math.ceil((scrollY + canvas.height) / ROW) + 1) * perRow);
    for (let i = first; i < last; i++) {
      context.fillStyle = all[i].colour;
      context.fillRect(all[i].x, all[i].y - scrollY, CELL, CELL);
    }
  }

  change(i, colour) {
    this.all[i].colour = colour;
    this.draw();
  }

  scroll(y) {
    scrollTo(0, y);
    this.draw();
  }
}

class Svg {
  constructor(room, all) {
    this.all = all;
    room.style.height = "";
    this.svg = room.appendChild(document.createElementNS(SVG, "svg"));
    this.svg.setAttribute("width", innerWidth);
    this.svg.setAttribute("height", height(all));
  }

  draw() {
    for (const cell of this.all) {
      const rect = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({ x: cell.x, y: cell.y, width: CELL, height: CELL, fill: cell.colour }))
        rect.setAttribute(name, value);
      this.svg.appendChild(rect);
    }
  }

  change(i, colour) {
    this.svg.children[i].setAttribute("fill", colour);
  }

  scroll(y) {
    scrollTo(0, y);
  }
}

// What the main thread needs for an action and the frame that shows it: the message is delivered after that frame.
function timed(action) {
  return new Promise((resolve) => {
    requestAnimationFrame(() => {
      const began = performance.now();
      const channel = new MessageChannel();
      channel.port1.onmessage = () => resolve(performance.now() - began);
      action();
      channel.port2.postMessage(null);
    });
  });
}

function at(values, share) {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
}

async function repeated(times, action) {
  const found = [];
  for (let i = 0; i < times; i++) found.push(await timed(() => action(i)));
  return at(found, 0.5);
}

async function framesWhile(times, action) {
  const found = [];
  let before = null;
  for (let i = 0; i < times; i++) {
    const now = await new Promise(requestAnimationFrame);
    if (before !== null) found.push(now - before);
    before = now;
    action(i);
  }
  return at(found, 0.95);
}

async function measured(Drawing, all) {
  scrollTo(0, 0);
  const room = document.querySelector("#room");
  room.replaceChildren();
  const drawing = new Drawing(room, all);
  const first = await timed(() => drawing.draw());
  const change = await repeated(30, (i) => drawing.change(i, COLOURS[i % COLOURS.length]));
  const scroll = await repeated(60, (i) => drawing.scroll(i * 120));
  const frame = await framesWhile(60, (i) => drawing.scroll(i * 120));
  return { first, change, scroll, frame };
}

// In milliseconds. Both once before, so that neither has the cost of the first run.
globalThis.compare = async (count) => {
  for (const Drawing of [Canvas, Svg]) await measured(Drawing, cells(1000));
  return { canvas: await measured(Canvas, cells(count)), svg: await measured(Svg, cells(count)) };
};
document.documentElement.dataset.ready = "yes";
