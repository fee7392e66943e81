// Colour maps that people with any colour vision can order: lightness rises evenly. High similarity
// is always ink against the ground, so the sequential map (mako) runs the other way in the dark.

/** @import { Kind, Range, Scale, Theme } from "headscope/types.js" */

const MAKO = ["#0b0405", "#2e1e3c", "#413d7b", "#37659e", "#348fa7", "#40b7ad", "#8ad9b1", "#def5e5"];
const SEQUENTIAL = {
  light: ["#f4fbf5", ...MAKO.toReversed().slice(0, -1)],
  dark: ["#14171a", ...MAKO.slice(1)],
};
const DIVERGING = {
  light: ["#8a4a00", "#d98218", "#f6c88a", "#f6f6f4", "#a9c8ea", "#3f7fc4", "#12346b"],
  dark: ["#ffd59e", "#e08214", "#7a4309", "#16191c", "#274f86", "#5f97dc", "#c8e0ff"],
};

/** @param {string} hex */
function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/**
 * 256 colours (256 × 3 bytes) between the anchors.
 *
 * @param {string[]} anchors
 */
function table(anchors) {
  const stops = anchors.map(channels);
  const colours = new Uint8Array(768);
  for (let k = 0; k < 256; k++) {
    const place = (k / 255) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) {
      colours[k * 3 + c] = Math.round(stops[at][c] + (stops[at + 1][c] - stops[at][c]) * (place - at));
    }
  }
  return colours;
}

const TABLES = {
  light: { sequential: table(SEQUENTIAL.light), diverging: table(DIVERGING.light) },
  dark: { sequential: table(SEQUENTIAL.dark), diverging: table(DIVERGING.dark) },
};

/**
 * How the values of a matrix become colours. `centred` has a sign that means something, so its map
 * diverges from 0 and reaches equally far both ways; the others run from low to high.
 *
 * @param {Kind} kind
 * @param {Range} range
 * @param {Theme} theme
 * @returns {Scale}
 */
export function scaleOf(kind, [low, high], theme) {
  const diverging = kind === "centred";
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const [from, to] = diverging ? [-reach, reach] : [low, high > low ? high : low + 1];
  const colours = TABLES[theme][diverging ? "diverging" : "sequential"];
  const step = (/** @type {number} */ value) =>
    Math.max(0, Math.min(255, Math.round(((value - from) / (to - from)) * 255))) || 0;
  return { from, to, colours, step };
}

/**
 * @param {Scale} scale
 * @param {number} value
 */
export function cssColour(scale, value) {
  const at = 3 * scale.step(value);
  return `rgb(${scale.colours[at]}, ${scale.colours[at + 1]}, ${scale.colours[at + 2]})`;
}

/**
 * Whether dark ink is readable on a value's colour.
 *
 * @param {Scale} scale
 * @param {number} value
 */
export function isPale(scale, value) {
  const [r, g, b] = scale.colours.subarray(3 * scale.step(value));
  return 0.3 * r + 0.59 * g + 0.11 * b > 140;
}
//# sourceURL=headscope/colours.js
