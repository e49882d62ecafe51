/** What has been drawn of a map, in horizontal strips: to scroll means to copy them. */

/** High enough that a screen needs few, low enough that one is drawn within a frame. */
const HEIGHT = 512;
/** A strip that is not shown collects changes; with more than these it is cheaper to draw it as a whole. */
const MOST_CHANGES = 2000;

/** The strips. */
export class Tiles {
  #draw;
  #redraw;
  #tiles = new Map();
  #width = 0;
  #ratio = 1;

  /**
   * @param {(ctx: OffscreenCanvasRenderingContext2D, area: {x: number, y: number, w: number, h: number}) => void} draw
   *   draws an area that is empty
   * @param {(ctx: OffscreenCanvasRenderingContext2D, shape: any) => void} redraw draws one shape over what was there
   */
  constructor(draw, redraw) {
    this.#draw = draw;
    this.#redraw = redraw;
  }

  /** Forgets everything, because the layout, the colours or the size have changed. */
  reset(width, ratio) {
    this.#width = width;
    this.#ratio = ratio;
    this.#tiles.clear();
  }

  /** Draws a shape again before it is shown next; it is not higher than `height` from its top. */
  invalidate(shape, height) {
    for (let index = Math.floor(shape.y / HEIGHT); index * HEIGHT < shape.y + height; index += 1) {
      const tile = this.#tiles.get(index);
      tile?.changed.push(shape);
      if (tile?.changed.length > MOST_CHANGES) {
        this.#tiles.delete(index);
      }
    }
  }

  /** Copies the part from `top` on, of `height`, to a canvas whose own top shows `top`. */
  show(ctx, top, height) {
    const first = Math.max(0, Math.floor(top / HEIGHT));
    const last = Math.floor((top + height - 1) / HEIGHT);
    for (let index = first; index <= last; index += 1) {
      const tile = this.#tile(index);
      ctx.drawImage(tile.canvas, 0, Math.round((index * HEIGHT - top) * this.#ratio));
    }
    for (const index of this.#tiles.keys()) {
      if (index < first - 2 || index > last + 2) {
        this.#tiles.delete(index);
      }
    }
  }

  #tile(index) {
    let tile = this.#tiles.get(index);
    if (tile === undefined) {
      const canvas = new OffscreenCanvas(Math.max(1, Math.round(this.#width * this.#ratio)), Math.round(HEIGHT * this.#ratio));
      tile = { canvas, ctx: canvas.getContext("2d"), changed: [] };
      tile.ctx.setTransform(this.#ratio, 0, 0, this.#ratio, 0, -index * HEIGHT * this.#ratio);
      this.#tiles.set(index, tile);
      this.#draw(tile.ctx, { x: 0, y: index * HEIGHT, w: this.#width, h: HEIGHT });
    }
    for (const shape of tile.changed.splice(0)) {
      this.#redraw(tile.ctx, shape);
    }
    return tile;
  }
}
