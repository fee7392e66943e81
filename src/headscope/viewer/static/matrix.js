// One matrix with its tokens on both sides: drawn on a canvas, zoomed by wheel, moved by drag.

import { scaleOf } from "headscope/colours.js";
import { h, shortened } from "headscope/dom.js";
import { ink, theme } from "headscope/theme.js";
import { Viewport } from "headscope/viewport.js";

/** @import { Kind, Matrix as Numbers, Tokens } from "headscope/types.js" */

/**
 * A matrix with all that is needed to draw it; `names` are written beside it, a name a token.
 *
 * @typedef {object} How
 * @property {Kind} kind
 * @property {Pick<Tokens, "sentence"> & Partial<Pick<Tokens, "window" | "unknown">>} tokens
 * @property {string[]} names
 * @property {ImageBitmap} picture which may be in the light of another theme
 * @property {boolean} [marked]
 * @property {number | null} [pinned]
 */
/** @typedef {Numbers & How} Drawn */

const LABEL = 10.5; // font size in CSS pixels

export class Matrix {
  margin = 1;
  /** @type {Drawn | null} */
  drawn = null;
  /** @type {[row: number, column: number] | null} */
  cross = null;

  /**
   * `hover(i, j)` is told the cell under the pointer, or nothing; `pin(i)` the one clicked; `lines`
   * is the colour of the lines between sentences.
   *
   * @param {{viewport?: Viewport, hover?: (i?: number, j?: number) => void, pin?: (i: number) => void,
   *   labelled?: boolean, lines?: string, label: string}} options
   */
  constructor({ viewport = new Viewport(), hover, pin, labelled = true, lines = "grid", label }) {
    this.viewport = viewport;
    this.tell = hover ?? (() => {});
    this.pin = pin ?? (() => {});
    this.labelled = labelled;
    this.lines = lines;
    this.base = h("canvas", { class: "base", role: "img", "aria-label": label });
    this.over = h("canvas", { class: "over", "aria-hidden": "true" });
    this.element = h("div", { class: "matrix", tabindex: "-1" }, this.base, this.over);
    this.viewport.views.push(this);
    this.listen();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.element);
  }

  remove() {
    this.watcher.disconnect();
    this.viewport.views = this.viewport.views.filter((view) => view !== this);
    this.element.remove();
  }

  /**
   * Show a matrix and its picture.
   *
   * @param {Numbers} matrix
   * @param {How} how
   */
  show(matrix, how) {
    if (this.drawn?.picture !== how.picture) this.drawn?.picture.close();
    this.drawn = { ...matrix, ...how };
    this.margin = this.labelled ? widestLabel(how.names) : 1;
    if (this.viewport.size !== matrix.size) this.viewport.reset(matrix.size);
    this.draw();
  }

  /** Its colours, in the light of the theme. */
  scale() {
    return this.drawn && scaleOf(this.drawn.kind, this.drawn.range, theme());
  }

  /** Sizes in CSS pixels, on whole device pixels. */
  layout() {
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.element.getBoundingClientRect();
    const plot = Math.max(40, Math.floor(Math.min(width, height) - this.margin - 1));
    return { ratio, plot, side: plot + this.margin + 1, cell: plot / this.viewport.span };
  }

  draw() {
    const { drawn } = this;
    if (!drawn || !this.element.isConnected) return;
    const { ratio, plot, side, cell } = this.layout();
    const { x, y, span } = this.viewport;
    for (const canvas of [this.base, this.over]) {
      canvas.width = canvas.height = Math.round(side * ratio);
      canvas.style.width = canvas.style.height = `${side}px`;
    }
    const context = contextOf(this.base);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = ink("plot");
    context.fillRect(this.margin, this.margin, plot, plot);
    context.imageSmoothingEnabled = cell * ratio < 1;
    context.drawImage(drawn.picture, x, y, span, span, this.margin, this.margin, plot, plot);
    this.drawSentences(drawn, context, plot, cell);
    this.drawLabels(drawn, context, cell);
    context.strokeStyle = ink("line");
    context.strokeRect(this.margin - 0.5, this.margin - 0.5, plot + 1, plot + 1);
    this.drawOver();
  }

  /**
   * @param {Drawn} drawn
   * @param {CanvasRenderingContext2D} context
   * @param {number} plot
   * @param {number} cell
   */
  drawSentences({ positions, tokens }, context, plot, cell) {
    this.drawLines(context, plot, cell, boundaries(positions, tokens.sentence), ink(this.lines), 1);
    const seams = tokens.window ? boundaries(positions, tokens.window) : [];
    this.drawLines(context, plot, cell, seams, ink("seam"), 2);
  }

  /**
   * Lines before some of the rows and columns.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {number} plot
   * @param {number} cell
   * @param {number[]} places
   * @param {string} colour
   * @param {number} width
   */
  drawLines(context, plot, cell, places, colour, width) {
    const { x, y, span } = this.viewport;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (const at of places) {
      const [column, row] = [this.margin + (at - x) * cell, this.margin + (at - y) * cell];
      if (at > x && at < x + span)
        line(context, Math.round(column) + 0.5, this.margin, Math.round(column) + 0.5, this.margin + plot);
      if (at > y && at < y + span)
        line(context, this.margin, Math.round(row) + 0.5, this.margin + plot, Math.round(row) + 0.5);
    }
    context.stroke();
  }

  /**
   * @param {Drawn} drawn
   * @param {CanvasRenderingContext2D} context
   * @param {number} cell
   */
  drawLabels(drawn, context, cell) {
    if (!this.labelled) return;
    const every = Math.max(1, Math.ceil((LABEL + 1) / cell));
    const font = Math.min(LABEL, Math.max(8, cell - 1));
    context.font = `${font}px ${ink("font")}`;
    context.textBaseline = "middle";
    context.fillStyle = ink("muted");
    const { x, y, span } = this.viewport;
    for (let k = 0; k < drawn.size; k += every) {
      const middle = k + 0.5;
      const place = (/** @type {number} */ from) => this.margin + (middle - from) * cell;
      if (middle > y && middle < y + span) this.label(drawn, context, k, place(y), false);
      if (middle > x && middle < x + span) this.label(drawn, context, k, place(x), true);
    }
  }

  /**
   * @param {Drawn} drawn
   * @param {CanvasRenderingContext2D} context
   * @param {number} k
   * @param {number} place
   * @param {boolean} above
   */
  label({ names, positions, tokens }, context, k, place, above) {
    const text = shortened(names[positions[k]], 13);
    context.save();
    if (tokens.unknown?.[positions[k]]) context.fillStyle = ink("bad");
    if (above) {
      context.translate(place, this.margin - 5);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
    } else {
      context.translate(this.margin - 5, place);
      context.textAlign = "right";
    }
    context.fillText(text, 0, 0, this.margin - 8);
    context.restore();
  }

  /** The cross under the pointer and the token held on to, above the matrix. */
  drawOver(cross = this.cross) {
    this.cross = cross;
    const { drawn } = this;
    if (!drawn) return;
    const { ratio, plot, side, cell } = this.layout();
    const context = contextOf(this.over);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, side, side);
    const pinned = drawn.pinned ?? null;
    if (pinned !== null) this.band(drawn, context, [pinned, pinned], plot, cell, ink("accent"));
    if (cross) this.band(drawn, context, cross, plot, cell, ink("ink"));
  }

  /**
   * @param {Drawn} drawn
   * @param {CanvasRenderingContext2D} context
   * @param {[row: number, column: number]} cross
   * @param {number} plot
   * @param {number} cell
   * @param {string} colour
   */
  band(drawn, context, [i, j], plot, cell, colour) {
    const { x, y, span } = this.viewport;
    context.strokeStyle = context.fillStyle = colour;
    context.font = `600 ${LABEL}px ${ink("font")}`;
    context.textBaseline = "middle";
    const mark = (/** @type {number} */ k, /** @type {number} */ from, /** @type {boolean} */ above) => {
      if (k + 0.5 < from || k + 0.5 > from + span) return;
      const place = this.margin + (k + 0.5 - from) * cell;
      const half = Math.max(LABEL / 2 + 2, cell / 2);
      if (this.labelled) {
        context.save();
        context.fillStyle = ink("ground");
        if (above) context.fillRect(place - half, 0, 2 * half, this.margin - 1);
        else context.fillRect(0, place - half, this.margin - 1, 2 * half);
        context.restore();
        this.label(drawn, context, k, place, above);
      }
      context.globalAlpha = 0.55;
      const edge = cell >= 4 ? cell / 2 : 0;
      for (const offset of edge ? [-edge, edge] : [0]) {
        context.beginPath();
        if (above) line(context, place + offset, this.margin, place + offset, this.margin + plot);
        else line(context, this.margin, place + offset, this.margin + plot, place + offset);
        context.stroke();
      }
      context.globalAlpha = 1;
    };
    mark(i, y, false);
    mark(j, x, true);
  }

  /**
   * The cell under the pointer, null outside of the matrix.
   *
   * @param {PointerEvent} event
   * @returns {[row: number, column: number] | null}
   */
  cellAt(event) {
    if (!this.drawn) return null;
    const last = this.drawn.size - 1;
    const box = this.over.getBoundingClientRect();
    const { plot, cell } = this.layout();
    const [px, py] = [event.clientX - box.left - this.margin, event.clientY - box.top - this.margin];
    if (px < 0 || py < 0 || px >= plot || py >= plot) return null;
    const index = (/** @type {number} */ offset, /** @type {number} */ from) =>
      Math.min(last, Math.floor(from + offset / cell));
    return [index(py, this.viewport.y), index(px, this.viewport.x)];
  }

  listen() {
    /** @type {[x: number, y: number] | null} */
    let from = null;
    let moved = false;
    this.over.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = this.over.getBoundingClientRect();
        const { plot } = this.layout();
        const share = (/** @type {number} */ at, /** @type {number} */ start) =>
          Math.min(1, Math.max(0, (at - start - this.margin) / plot));
        this.viewport.zoom(
          event.deltaY > 0 ? 1.2 : 1 / 1.2,
          share(event.clientX, box.left),
          share(event.clientY, box.top),
        );
      },
      { passive: false },
    );
    this.over.addEventListener("pointerdown", (event) => {
      [from, moved] = [[event.clientX, event.clientY], false];
      this.over.setPointerCapture(event.pointerId);
    });
    this.over.addEventListener("pointermove", (event) => {
      if (from && event.buttons) {
        const { cell } = this.layout();
        const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
        if (moved || Math.hypot(dx, dy) > 3) {
          moved = true;
          from = [event.clientX, event.clientY];
          this.viewport.move(-dx / cell, -dy / cell);
        }
      } else {
        this.tell(...(this.cellAt(event) ?? []));
      }
    });
    this.over.addEventListener("pointerup", (event) => {
      const cell = moved ? null : this.cellAt(event);
      if (cell) this.pin(cell[0]);
      from = null;
    });
    this.over.addEventListener("pointerleave", () => this.tell());
    this.over.addEventListener("dblclick", () => {
      this.viewport.reset(this.viewport.size);
      this.viewport.move(0, 0);
    });
  }
}

/** @type {WeakMap<string[], number>} */
const widths = new WeakMap();

/**
 * Room for the labels of a text, in CSS pixels: the widest, within bounds.
 *
 * @param {string[]} names
 */
function widestLabel(names) {
  const known = widths.get(names);
  if (known !== undefined) return known;
  const context = contextOf(document.createElement("canvas"));
  context.font = `600 ${LABEL}px ${ink("font")}`;
  const widest = names.reduce(
    (most, name) => Math.max(most, context.measureText(shortened(name, 13)).width),
    0,
  );
  const room = Math.round(Math.min(88, Math.max(36, widest + 9)));
  widths.set(names, room);
  return room;
}

/**
 * What draws on a canvas.
 *
 * @param {HTMLCanvasElement} canvas
 */
export function contextOf(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("This browser gives no canvas to draw on.");
  return context;
}

/**
 * Where a new sentence, or another window, begins among the tokens that are shown.
 *
 * @param {Int32Array | number[]} positions
 * @param {number[]} part of each token
 */
export function boundaries(positions, part) {
  /** @type {number[]} */
  const found = [];
  for (let k = 1; k < positions.length; k++) {
    if (part[positions[k]] !== part[positions[k - 1]]) found.push(k);
  }
  return found;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(context, x1, y1, x2, y2) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}
//# sourceURL=headscope/matrix.js
