// What is on screen as a drawing for print: vector text and lines, matrices as exact pixels.

import { scaleOf } from "headscope/colours.js";
import { number, s, shortened } from "headscope/dom.js";
import { boundaries } from "headscope/matrix.js";

const FONT = "Helvetica, Arial, sans-serif";
const INK = "#1c1b1a";

/** A canvas as a data: address, encoded without holding up the page. */
async function address(canvas) {
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}

/** A picture from the worker, on a canvas of its own. */
function canvasOf(picture) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas;
}

function words(x, y, text, more = {}) {
  return s("text", { x, y, "font-family": FONT, "font-size": 9, fill: INK, ...more }, text);
}

function sheet(width, height, caption) {
  return s(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    s("title", {}, caption),
    s("rect", { width, height, fill: "#ffffff" }),
    words(12, 20, caption, { "font-size": 11 }),
  );
}

/** Matrices of heads side by side, each {title, kind, matrix, tokens, names, picture}, seen through `view`. */
export async function matrixFigure(parts, caption, view = null) {
  const { x, y, span } = view ?? { x: 0, y: 0, span: parts[0].matrix.size };
  const [plot, margin, top] = [Math.min(1400, Math.max(360, span * 9.5)), 90, 30];
  const drawing = sheet(parts.length * (plot + margin + 16), plot + margin + top + 44, caption);
  for (const [part, { title, kind, matrix, tokens, names, picture }] of parts.entries()) {
    const { size, positions, range } = matrix;
    const [left, above, cell] = [part * (plot + margin + 16) + margin, top + margin, plot / span];
    const clip = s(
      "svg",
      { x: left, y: above, width: plot, height: plot, viewBox: `${x} ${y} ${span} ${span}` },
      s("image", {
        width: size,
        height: size,
        href: await address(canvasOf(picture)),
        "image-rendering": "pixelated",
      }),
    );
    drawing.append(clip);
    for (const at of boundaries(positions, tokens.sentence)) {
      const [column, row] = [left + (at - x) * cell, above + (at - y) * cell];
      const stroke = { stroke: "#00000055", "stroke-width": 0.5 };
      if (at > x && at < x + span)
        drawing.append(s("line", { x1: column, x2: column, y1: above, y2: above + plot, ...stroke }));
      if (at > y && at < y + span)
        drawing.append(s("line", { x1: left, x2: left + plot, y1: row, y2: row, ...stroke }));
    }
    const every = Math.max(1, Math.ceil(8 / cell));
    const font = { "font-size": Math.min(9, Math.max(6, cell)) };
    for (let k = 0; k < size; k += every) {
      const text = shortened(names[positions[k]], 16);
      const [column, row] = [left + (k + 0.5 - x) * cell, above + (k + 0.5 - y) * cell];
      if (k + 0.5 > y && k + 0.5 < y + span)
        drawing.append(
          words(left - 4, row, text, { ...font, "text-anchor": "end", "dominant-baseline": "central" }),
        );
      if (k + 0.5 > x && k + 0.5 < x + span) {
        drawing.append(
          words(0, 0, text, {
            ...font,
            "dominant-baseline": "central",
            transform: `translate(${column} ${above - 4}) rotate(-90)`,
          }),
        );
      }
    }
    drawing.append(
      s("rect", {
        x: left,
        y: above,
        width: plot,
        height: plot,
        fill: "none",
        stroke: INK,
        "stroke-width": 0.5,
      }),
    );
    drawing.append(...(await legend(left, above + plot + 12, kind, range, title)));
  }
  return drawing;
}

async function legend(x, y, kind, range, title) {
  const scale = scaleOf(kind, range, "light");
  const ramp = document.createElement("canvas");
  [ramp.width, ramp.height] = [256, 1];
  const context = ramp.getContext("2d");
  for (let k = 0; k < 256; k++) {
    context.fillStyle = `rgb(${scale.colours.subarray(3 * k, 3 * k + 3).join()})`;
    context.fillRect(k, 0, 1, 1);
  }
  return [
    words(x, y + 8, title),
    words(x + 180, y + 8, number(scale.from), { "text-anchor": "end" }),
    s("image", {
      x: x + 184,
      y: y + 1,
      width: 100,
      height: 8,
      href: await address(ramp),
      preserveAspectRatio: "none",
    }),
    words(x + 288, y + 8, number(scale.to)),
  ];
}

/**
 * Heads as they stand in the grid: `places` in their order, in rows of `columns`, named by layer and
 * head unless they are `sorted`; `cell(at)` is what a square shows: {canvas} or {fill, ink, lines}.
 */
export async function atlasFigure({ places, columns, sorted, cell }, caption) {
  const [step, left, top] = [60, 36, 50];
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
    const said = sorted ? [name, ...lines] : lines;
    said.forEach((line, k) =>
      drawing.append(
        words(x + 3, y + 11 + 11 * k, shortened(line, 12), { "font-size": 8.5, fill: ink ?? INK }),
      ),
    );
    if (row === 0 && !sorted)
      drawing.append(words(x + side / 2, top - 6, String(column + 1), { "text-anchor": "middle" }));
    if (column === 0 && !sorted)
      drawing.append(words(left - 8, y + step / 2, `L${row + 1}`, { "text-anchor": "end" }));
  }
  return drawing;
}

/** The text where it stands on screen, with its shades, underlines and segments. */
export function textFigure(page, caption) {
  const frame = page.getBoundingClientRect();
  const drawing = sheet(frame.width + 24, frame.height + 48, caption);
  for (const segment of page.querySelectorAll(".segment")) {
    const [box, { borderLeftColor }] = [segment.getBoundingClientRect(), getComputedStyle(segment)];
    const [x, y] = [box.left - frame.left + 12, box.top - frame.top + 36];
    drawing.append(
      s("rect", { x, y, width: 4, height: box.height, fill: borderLeftColor }),
      words(x + 12, y + 13, segment.dataset.said),
    );
  }
  const seen = [...page.querySelectorAll(".token")].flatMap((token) =>
    [...token.getClientRects()].slice(0, 1).map((box) => [token, box]),
  );
  for (const [token, box] of seen) {
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
      words(x, y + box.height * 0.78, shortened(token.textContent, 60), {
        "font-size": size,
        fill: ground ? color : INK,
      }),
    );
  }
  return drawing;
}

/** The text in its segments, and beside it what boundaries are worth and how alike sentences are. */
export async function segmentsFigure(page, chart, kernel, caption) {
  const drawing = textFigure(page, caption);
  const [width, height] = ["width", "height"].map((side) => Number(drawing.getAttribute(side)));
  const bars = chart.cloneNode(true);
  const paint = { ".bar": "#0d6e78", ".bar.other": "#b9b4aa", text: "#66625b" };
  for (const [selector, fill] of Object.entries(paint))
    for (const part of bars.querySelectorAll(selector)) part.setAttribute("fill", fill);
  for (const part of bars.querySelectorAll("line")) part.setAttribute("stroke", INK);
  for (const part of bars.querySelectorAll("text")) part.setAttribute("font-size", "9");
  for (const part of bars.querySelectorAll("text")) part.setAttribute("font-family", FONT);
  for (const [name, value] of Object.entries({ x: width, y: 36, width: 300, height: 96 }))
    bars.setAttribute(name, value);
  drawing.append(words(width, 30, "what a boundary before each sentence is worth"), bars);
  if (kernel) {
    const href = await address(canvasOf(kernel));
    drawing.append(
      words(width, 162, "how alike the sentences are"),
      s("image", { x: width, y: 170, width: 300, height: 300, href, "image-rendering": "pixelated" }),
    );
  }
  const [wide, high] = [width + 312, Math.max(height, 490)];
  for (const part of [drawing, drawing.querySelector("rect")]) {
    part.setAttribute("width", wide);
    part.setAttribute("height", high);
  }
  drawing.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  return drawing;
}
//# sourceURL=headscope/figure.js
