// One matrix with its tokens on both sides: drawn on a canvas, zoomed by wheel, moved by drag.

import { scaleOf } from "headscope/colours.js";
import { h, shortened } from "headscope/dom.js";
import { ink, theme } from "headscope/theme.js";

const LABEL = 10.5; // font size in CSS pixels
const FEWEST = 6; // cells across, at the closest zoom

/** What part of the matrices is seen; side by side they share one. */
export class Viewport {
  constructor() {
    this.views = [];
    this.reset(1);
  }

  reset(size) {
    [this.size, this.x, this.y, this.span] = [size, 0, 0, size];
  }

  zoom(factor, x, y) {
    const span = Math.min(this.size, Math.max(Math.min(FEWEST, this.size), this.span * factor));
    this.x += (this.span - span) * x;
    this.y += (this.span - span) * y;
    this.span = span;
    this.move(0, 0);
  }

  move(dx, dy) {
    const inside = (value) => Math.min(Math.max(value, 0), this.size - this.span);
    [this.x, this.y] = [inside(this.x + dx), inside(this.y + dy)];
    for (const view of this.views) view.draw();
  }
}

export class Matrix {
  /**
   * `hover(i, j)` is told the cell under the pointer, or nothing; `pin(i)` the one clicked; `lines`
   * is the colour of the lines between sentences.
   */
  constructor({ viewport = new Viewport(), hover, pin, labelled = true, lines = "grid", label }) {
    Object.assign(this, { viewport, hover, pin, labelled, lines, margin: 1 });
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

  /** Show a matrix and its picture, which may be in the light of another theme. */
  show({ values, size, positions, range }, { kind, tokens, names, picture, marked = false, pinned = null }) {
    if (this.image !== picture) this.image?.close();
    Object.assign(this, { values, size, positions, range, kind, tokens, names });
    Object.assign(this, { image: picture, marked, pinned });
    this.scale = scaleOf(kind, range, theme());
    this.margin = this.labelled ? widestLabel(names) : 1;
    if (this.viewport.size !== size) this.viewport.reset(size);
    this.draw();
  }

  /** Sizes in CSS pixels, on whole device pixels. */
  layout() {
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.element.getBoundingClientRect();
    const plot = Math.max(40, Math.floor(Math.min(width, height) - this.margin - 1));
    return { ratio, plot, side: plot + this.margin + 1, cell: plot / this.viewport.span };
  }

  draw() {
    if (!this.values || !this.element.isConnected) return;
    const { ratio, plot, side, cell } = this.layout();
    const { x, y, span } = this.viewport;
    for (const canvas of [this.base, this.over]) {
      canvas.width = canvas.height = Math.round(side * ratio);
      canvas.style.width = canvas.style.height = `${side}px`;
    }
    const context = this.base.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = ink("plot");
    context.fillRect(this.margin, this.margin, plot, plot);
    context.imageSmoothingEnabled = cell * ratio < 1;
    context.drawImage(this.image, x, y, span, span, this.margin, this.margin, plot, plot);
    this.drawSentences(context, plot, cell);
    this.drawLabels(context, plot, cell);
    context.strokeStyle = ink("line");
    context.strokeRect(this.margin - 0.5, this.margin - 0.5, plot + 1, plot + 1);
    this.drawOver();
  }

  drawSentences(context, plot, cell) {
    const { x, y, span } = this.viewport;
    context.strokeStyle = ink(this.lines);
    context.lineWidth = 1;
    context.beginPath();
    for (const at of boundaries(this.positions, this.tokens.sentence)) {
      const [column, row] = [this.margin + (at - x) * cell, this.margin + (at - y) * cell];
      if (at > x && at < x + span)
        line(context, Math.round(column) + 0.5, this.margin, Math.round(column) + 0.5, this.margin + plot);
      if (at > y && at < y + span)
        line(context, this.margin, Math.round(row) + 0.5, this.margin + plot, Math.round(row) + 0.5);
    }
    context.stroke();
  }

  drawLabels(context, plot, cell) {
    if (!this.labelled) return;
    const every = Math.max(1, Math.ceil((LABEL + 1) / cell));
    const font = Math.min(LABEL, Math.max(8, cell - 1));
    context.font = `${font}px ${ink("font")}`;
    context.textBaseline = "middle";
    context.fillStyle = ink("muted");
    const { x, y, span } = this.viewport;
    for (let k = 0; k < this.size; k += every) {
      const middle = k + 0.5;
      if (middle > y && middle < y + span) this.label(context, k, this.margin + (middle - y) * cell, false);
      if (middle > x && middle < x + span) this.label(context, k, this.margin + (middle - x) * cell, true);
    }
  }

  label(context, k, place, above) {
    const text = shortened(this.names[this.positions[k]], 13);
    context.save();
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
  drawOver(cross = this.cross ?? null) {
    this.cross = cross;
    const { ratio, plot, side, cell } = this.layout();
    const context = this.over.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, side, side);
    if (this.pinned !== null) this.band(context, this.pinned, this.pinned, plot, cell, ink("accent"));
    if (cross) this.band(context, cross[0], cross[1], plot, cell, ink("ink"));
  }

  band(context, i, j, plot, cell, colour) {
    const { x, y, span } = this.viewport;
    context.strokeStyle = context.fillStyle = colour;
    context.font = `600 ${LABEL}px ${ink("font")}`;
    context.textBaseline = "middle";
    const mark = (k, from, above) => {
      if (k + 0.5 < from || k + 0.5 > from + span) return;
      const place = this.margin + (k + 0.5 - from) * cell;
      const half = Math.max(LABEL / 2 + 2, cell / 2);
      if (this.labelled) {
        context.save();
        context.fillStyle = ink("ground");
        if (above) context.fillRect(place - half, 0, 2 * half, this.margin - 1);
        else context.fillRect(0, place - half, this.margin - 1, 2 * half);
        context.restore();
        this.label(context, k, place, above);
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

  cellAt(event) {
    const box = this.over.getBoundingClientRect();
    const { plot, cell } = this.layout();
    const [px, py] = [event.clientX - box.left - this.margin, event.clientY - box.top - this.margin];
    if (px < 0 || py < 0 || px >= plot || py >= plot) return null;
    const index = (offset, from) => Math.min(this.size - 1, Math.floor(from + offset / cell));
    return [index(py, this.viewport.y), index(px, this.viewport.x)];
  }

  listen() {
    let [from, moved] = [null, false];
    this.over.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = this.over.getBoundingClientRect();
        const { plot } = this.layout();
        const share = (at, start) => Math.min(1, Math.max(0, (at - start - this.margin) / plot));
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
      } else if (this.values) {
        this.hover?.(...(this.cellAt(event) ?? []));
      }
    });
    this.over.addEventListener("pointerup", (event) => {
      const cell = !moved && this.values ? this.cellAt(event) : null;
      if (cell) this.pin?.(cell[0]);
      from = null;
    });
    this.over.addEventListener("pointerleave", () => this.hover?.());
    this.over.addEventListener("dblclick", () => {
      this.viewport.reset(this.size);
      this.viewport.move(0, 0);
    });
  }
}

const widths = new WeakMap();

/** Room for the labels of a text, in CSS pixels: the widest, within bounds. */
function widestLabel(names) {
  if (!widths.has(names)) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = `600 ${LABEL}px ${ink("font")}`;
    const widest = names.reduce(
      (most, name) => Math.max(most, context.measureText(shortened(name, 13)).width),
      0,
    );
    widths.set(names, Math.round(Math.min(88, Math.max(36, widest + 9))));
  }
  return widths.get(names);
}

/** Where a new sentence begins among the tokens that are shown. */
export function boundaries(positions, sentence) {
  const found = [];
  for (let k = 1; k < positions.length; k++) {
    if (sentence[positions[k]] !== sentence[positions[k - 1]]) found.push(k);
  }
  return found;
}

function line(context, x1, y1, x2, y2) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}
//# sourceURL=headscope/matrix.js
