// How far apart the tokens of the high pairs are, beside the same for all pairs: the chance curve.

import { percent, s } from "headscope/dom.js";

/** @import { Pairs } from "headscope/types.js" */
/** @typedef {[from: number, to: number]} Bin */

const [WIDTH, HEIGHT, BELOW, ABOVE] = [300, 104, 26, 12];

/**
 * Bins that grow with distance, half an octave each: 1, 2, 3, 4–5, 6–7, 8–11, …
 *
 * @param {number} tokens
 * @returns {Bin[]}
 */
export function distanceBins(tokens) {
  const edges = [1];
  for (let edge = 1; edge < tokens;) {
    edge = Math.max(edge + 1, Math.round(edge * Math.SQRT2));
    edges.push(edge);
  }
  return edges.slice(0, -1).map((from, k) => [from, edges[k + 1] - 1]);
}

/**
 * @param {Float64Array} byDistance
 * @param {number} count
 * @param {Bin[]} bins
 */
export function shares(byDistance, count, bins) {
  return bins.map(([from, to]) => {
    let sum = 0;
    for (let d = from; d <= Math.min(to, byDistance.length - 1); d++) sum += byDistance[d];
    return count ? sum / count : 0;
  });
}

/**
 * @param {Pairs} found
 * @param {string} unit of distance
 */
export function histogram({ all, high }, unit = "tokens") {
  const bins = distanceBins(all.byDistance.findLastIndex((count) => count > 0) + 1);
  const [bars, chance] = [
    shares(high.byDistance, high.placed, bins),
    shares(all.byDistance, all.placed, bins),
  ];
  const most = Math.max(...bars, ...chance, 1e-9);
  const step = WIDTH / Math.max(bins.length, 1);
  const floor = HEIGHT - BELOW;
  const y = (/** @type {number} */ share) => floor - (share / most) * (floor - ABOVE);
  // Half as wide as a number is, so that the last one is not cut off.
  const inside = (/** @type {number} */ x, /** @type {number} */ said) =>
    Math.min(x, WIDTH - 3 * String(said).length);
  const name = (/** @type {Bin} */ [from, to]) => (from === to ? `${from}` : `${from}–${to}`);
  const drawing = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "histogram",
    role: "img",
    "aria-label": "Distances of the high pairs as bars, of all pairs as a line",
  });
  bins.forEach((bin, k) => {
    drawing.append(
      s(
        "rect",
        {
          x: k * step + 0.75,
          y: y(bars[k]),
          width: Math.max(step - 1.5, 1),
          height: floor - y(bars[k]),
          class: "bar",
        },
        s(
          "title",
          {},
          `${name(bin)} ${unit} apart: ${percent(bars[k])} of the high pairs, ${percent(chance[k])} of all`,
        ),
      ),
    );
    if (k % Math.ceil(bins.length / 11) === 0) {
      drawing.append(
        s(
          "text",
          { x: inside((k + 0.5) * step, bin[0]), y: floor + 11, "text-anchor": "middle" },
          String(bin[0]),
        ),
      );
    }
  });
  const points = chance.map((share, k) => `${(k + 0.5) * step},${y(share)}`).join(" ");
  drawing.append(
    s("line", { x1: 0, x2: WIDTH, y1: floor + 0.5, y2: floor + 0.5, class: "axis" }),
    s("polyline", { points, class: "chance" }),
    s("text", { x: WIDTH / 2, y: HEIGHT - 2, "text-anchor": "middle" }, `distance in ${unit}`),
    s("text", { x: WIDTH, y: 8, "text-anchor": "end" }, percent(most)),
  );
  return drawing;
}
//# sourceURL=headscope/histogram.js
