// Zooming and moving, for matrices that are looked at together.

/** @import { Matrix } from "headscope/matrix.js" */

const FEWEST = 6; // cells across, at the closest zoom

/** What part of the matrices is seen; side by side they share one. */
export class Viewport {
  /** @type {Matrix[]} */
  views = [];
  size = 1;
  x = 0;
  y = 0;
  span = 1;

  /** @param {number} size */
  reset(size) {
    [this.size, this.x, this.y, this.span] = [size, 0, 0, size];
  }

  /**
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  zoom(factor, x, y) {
    const span = Math.min(this.size, Math.max(Math.min(FEWEST, this.size), this.span * factor));
    this.x += (this.span - span) * x;
    this.y += (this.span - span) * y;
    this.span = span;
    this.move(0, 0);
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  move(dx, dy) {
    const inside = (/** @type {number} */ value) => Math.min(Math.max(value, 0), this.size - this.span);
    [this.x, this.y] = [inside(this.x + dx), inside(this.y + dy)];
    for (const view of this.views) view.draw();
  }
}
//# sourceURL=headscope/viewport.js
