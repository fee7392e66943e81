// What is on screen as a drawing for print: vector text and lines, matrices as exact pixels.

import { scaleOf } from "headscope/colours.js";
import { number, s, shortened } from "headscope/dom.js";
import { boundaries, contextOf } from "headscope/matrix.js";

/** @import { Kind, Matrix, Range, Tokens } from "headscope/types.js" */

/**
 * A matrix of a figure.
 *
 * @typedef {object} Part
 * @property {string} title
 * @property {Kind} kind
 * @property {Matrix} matrix
 * @property {Tokens} tokens
 * @property {string[]} names
 * @property {ImageBitmap} picture
 */

/** A square of the atlas: a picture, or a colour with words in an ink. */
/** @typedef {{canvas?: HTMLCanvasElement, fill?: string, ink?: string, lines?: string[]}} Cell */

const FONT = "Helvetica, Arial, sans-serif";
const INK = "#1c1b1a";
const SEAM = "#c8401a";
// A page of print is 180 mm wide; words of this size are read there, beside one matrix of PLOT.
const [PLOT, LEAST] = [560, 9];
const SMALL = { "font-size": 12 };

/**
 * A canvas as a file, encoded without holding up the page.
 *
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<Blob>}
 */
export function pngOf(canvas) {
  const none = new Error("This browser could not make a picture of this size.");
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(none)), "image/png"),
  );
}

/**
 * A canvas as a data: address.
 *
 * @param {HTMLCanvasElement} canvas
 * @returns {Promise<string>}
 */
async function address(canvas) {
  const blob = await pngOf(canvas);
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsDataURL(blob);
  });
}

/**
 * A picture from the worker, on a canvas of its own.
 *
 * @param {ImageBitmap} picture
 */
function canvasOf(picture) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  contextOf(canvas).drawImage(picture, 0, 0);
  return canvas;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {Record<string, string | number>} more
 */
function words(x, y, text, more = {}) {
  return s("text", { x, y, "font-family": FONT, "font-size": 9, fill: INK, ...more }, text);
}

/**
 * @param {number} width
 * @param {number} height
 * @param {string} caption
 */
function sheet(width, height, caption) {
  return s(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    s("title", {}, caption),
    s("rect", { width, height, fill: "#ffffff" }),
    words(12, 0.026 * width + 6, caption, { "font-size": width / 75 }),
  );
}

/**
 * Matrices of heads, two in a row, seen through `view`. Two stand on one page of print, so that the
 * words beside them are larger.
 *
 * @param {Part[]} parts
 * @param {string} caption
 * @param {{x: number, y: number, span: number} | null} view
 */
export async function matrixFigure(parts, caption, view = null) {
  const seen = view ?? { x: 0, y: 0, span: parts[0].matrix.size };
  const [columns, rows] = [Math.min(2, parts.length), Math.ceil(parts.length / 2)];
  const font = columns === 1 ? LEAST : 1.75 * LEAST;
  const margin = 7 * font;
  const [width, height] = [PLOT + margin + 16, PLOT + margin + 3 * font + 16];
  const drawing = sheet(columns * width, rows * height + 3 * font, caption);
  for (const [place, part] of parts.entries()) {
    const left = (place % columns) * width + margin;
    const above = Math.floor(place / columns) * height + 3 * font + margin;
    drawing.append(...(await matrixPart(part, seen, left, above, font)));
  }
  return drawing;
}

/**
 * One matrix with the lines of its sentences and windows, its tokens and its colours.
 *
 * @param {Part} part
 * @param {{x: number, y: number, span: number}} view
 * @param {number} left
 * @param {number} above
 * @param {number} font
 */
async function matrixPart(
  { title, kind, matrix, tokens, names, picture },
  { x, y, span },
  left,
  above,
  font,
) {
  const { size, positions, range } = matrix;
  const cell = PLOT / span;
  const frame = { x: left, y: above, width: PLOT, height: PLOT };
  const href = await address(canvasOf(picture));
  const image = s("image", { width: size, height: size, href, "image-rendering": "pixelated" });
  /** @type {SVGElement[]} */
  const drawn = [s("svg", { ...frame, viewBox: `${x} ${y} ${span} ${span}` }, image)];
  const seams = new Set(boundaries(positions, tokens.window));
  for (const at of [...boundaries(positions, tokens.sentence), ...seams]) {
    const [column, row] = [left + (at - x) * cell, above + (at - y) * cell];
    const stroke = seams.has(at)
      ? { stroke: SEAM, "stroke-width": 1.5 }
      : { stroke: "#00000055", "stroke-width": 0.5 };
    if (at > x && at < x + span)
      drawn.push(s("line", { x1: column, x2: column, y1: above, y2: above + PLOT, ...stroke }));
    if (at > y && at < y + span)
      drawn.push(s("line", { x1: left, x2: left + PLOT, y1: row, y2: row, ...stroke }));
  }
  const every = Math.max(1, Math.ceil((0.95 * font) / cell));
  const how = { "font-size": font, "dominant-baseline": "central" };
  for (let k = 0; k < size; k += every) {
    const text = shortened(names[positions[k]], 16);
    const [column, row] = [left + (k + 0.5 - x) * cell, above + (k + 0.5 - y) * cell];
    const turned = { transform: `translate(${column} ${above - 4}) rotate(-90)` };
    if (k + 0.5 > y && k + 0.5 < y + span)
      drawn.push(words(left - 4, row, text, { ...how, "text-anchor": "end" }));
    if (k + 0.5 > x && k + 0.5 < x + span) drawn.push(words(0, 0, text, { ...how, ...turned }));
  }
  drawn.push(s("rect", { ...frame, fill: "none", stroke: INK, "stroke-width": 0.5 }));
  const below = { transform: `translate(${left} ${above + PLOT + font}) scale(${font / LEAST})` };
  return [...drawn, s("g", below, await legend(0, 0, kind, range, title))];
}

/**
 * @param {number} x
 * @param {number} y
 * @param {Kind} kind
 * @param {Range} range
 * @param {string} title
 */
async function legend(x, y, kind, range, title) {
  const scale = scaleOf(kind, range, "light");
  const ramp = document.createElement("canvas");
  [ramp.width, ramp.height] = [256, 1];
  const context = contextOf(ramp);
  for (let k = 0; k < 256; k++) {
    context.fillStyle = `rgb(${scale.colours.subarray(3 * k, 3 * k + 3).join()})`;
    context.fillRect(k, 0, 1, 1);
  }
  return [
    words(x, y + 8, title),
    words(x + 130, y + 8, number(scale.from), { "text-anchor": "end" }),
    s("image", {
      x: x + 134,
      y: y + 1,
      width: 80,
      height: 8,
      href: await address(ramp),
      preserveAspectRatio: "none",
    }),
    words(x + 218, y + 8, number(scale.to)),
  ];
}

/**
 * Heads as they stand in the grid: `places` in their order, in rows of `columns`, named by layer and
 * head unless they are `sorted`; `cell(at)` is what a square shows.
 *
 * @param {{places: number[], columns: number, sorted: boolean, cell: (at: number) => Cell}} atlas
 * @param {string} caption
 */
export async function atlasFigure({ places, columns, sorted, cell }, caption) {
  const [step, left] = [60, 36];
  const font = Math.max(LEAST, (columns * step) / 75); // of the names of rows and columns
  const inside = Math.min(font, 14);
  const top = 3.5 * font + 18;
  const rows = Math.ceil(places.length / columns);
  const drawing = sheet(left + columns * step + 12, top + rows * step + 12, caption);
  for (const [order, at] of places.entries()) {
    const [row, column] = [Math.floor(order / columns), order % columns];
    const [x, y, side] = [left + column * step, top + row * step, step - 4];
    const box = { x, y, width: side, height: side };
    const { canvas, fill, ink, lines = [] } = cell(at);
    drawing.append(
      canvas
        ? s("image", { ...box, href: await address(canvas), "image-rendering": "pixelated" })
        : s("rect", { ...box, fill }),
    );
    const name = `${Math.floor(at / columns) + 1}·${(at % columns) + 1}`;
    const said = (sorted ? [name, ...lines] : lines).slice(0, Math.floor((side - 3) / (1.2 * inside)));
    const letters = Math.floor(side / (0.5 * inside));
    said.forEach((line, k) =>
      drawing.append(
        words(x + 3, y + 1.2 * inside * (k + 1), shortened(line, letters), {
          "font-size": inside,
          fill: ink ?? INK,
        }),
      ),
    );
    if (row === 0 && !sorted)
      drawing.append(
        words(x + side / 2, top - 6, String(column + 1), { "text-anchor": "middle", "font-size": font }),
      );
    if (column === 0 && !sorted)
      drawing.append(
        words(left - 8, y + step / 2, `L${row + 1}`, { "text-anchor": "end", "font-size": font }),
      );
  }
  return drawing;
}

/**
 * The text where it stands on screen, with its shades, underlines and segments.
 *
 * @param {HTMLElement} page
 * @param {string} caption
 */
export function textFigure(page, caption) {
  const frame = page.getBoundingClientRect();
  const drawing = sheet(frame.width + 24, frame.height + 48, caption);
  /** @type {(selector: string) => HTMLElement[]} */
  const all = (selector) =>
    [...page.querySelectorAll(selector)].filter((part) => part instanceof HTMLElement);
  for (const segment of all(".segment")) {
    const [box, { borderLeftColor }] = [segment.getBoundingClientRect(), getComputedStyle(segment)];
    const [x, y] = [box.left - frame.left + 12, box.top - frame.top + 36];
    drawing.append(
      s("rect", { x, y, width: 4, height: box.height, fill: borderLeftColor }),
      words(x + 12, y + 13, segment.dataset.said ?? "", SMALL),
    );
  }
  for (const seam of all(".seam")) {
    const box = seam.getBoundingClientRect();
    const [x, y] = [box.left - frame.left + 12, box.top - frame.top + 36];
    drawing.append(s("rect", { x, y, width: 2, height: box.height, fill: SEAM }));
  }
  const seen = all(".token").flatMap((token) =>
    [...token.getClientRects()].slice(0, 1).map((box) => ({ token, box })),
  );
  for (const { token, box } of seen) {
    const [x, y] = [box.left - frame.left + 12, box.top - frame.top + 36];
    const { backgroundColor: ground, color } = token.style;
    const size = parseFloat(getComputedStyle(token).fontSize);
    if (ground) drawing.append(s("rect", { x, y, width: box.width, height: box.height, fill: ground }));
    const part = Number(token.style.getPropertyValue("--part") || 0);
    if (part)
      drawing.append(
        s("rect", { x, y: y + box.height, width: box.width, height: 2, fill: "#0d6e78", opacity: part }),
      );
    drawing.append(
      words(x, y + box.height * 0.78, shortened(token.textContent ?? "", 60), {
        "font-size": size,
        fill: ground ? color : INK,
      }),
    );
  }
  return drawing;
}

/**
 * The text in its segments, and beside it what boundaries are worth and how alike sentences are.
 *
 * @param {HTMLElement} page
 * @param {SVGElement} chart
 * @param {ImageBitmap | null} kernel
 * @param {string} caption
 */
export async function segmentsFigure(page, chart, kernel, caption) {
  const drawing = textFigure(page, caption);
  const [width, height] = ["width", "height"].map((side) => Number(drawing.getAttribute(side)));
  const bars = /** @type {SVGElement} */ (chart.cloneNode(true));
  const paint = { ".bar": "#0d6e78", ".bar.other": "#b9b4aa", text: "#66625b" };
  for (const [selector, fill] of Object.entries(paint))
    for (const part of bars.querySelectorAll(selector)) part.setAttribute("fill", fill);
  for (const part of bars.querySelectorAll("line")) part.setAttribute("stroke", INK);
  for (const part of bars.querySelectorAll("text")) part.setAttribute("font-size", "11");
  for (const part of bars.querySelectorAll("text")) part.setAttribute("font-family", FONT);
  for (const [name, value] of Object.entries({
    x: width,
    y: 38,
    width: 300,
    height: 96,
    overflow: "visible",
  }))
    bars.setAttribute(name, String(value));
  drawing.append(words(width, 28, "what a boundary before each sentence is worth", SMALL), bars);
  if (kernel) {
    const href = await address(canvasOf(kernel));
    drawing.append(
      words(width, 162, "how alike the sentences are", SMALL),
      s("image", { x: width, y: 170, width: 300, height: 300, href, "image-rendering": "pixelated" }),
    );
  }
  const [wide, high] = [width + 312, Math.max(height, 490)];
  for (const part of [drawing, drawing.querySelector("rect")]) {
    part?.setAttribute("width", String(wide));
    part?.setAttribute("height", String(high));
  }
  drawing.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  return drawing;
}
//# sourceURL=headscope/figure.js
