// The worth of a boundary before every sentence, as bars: those that are boundaries stand out.

import { number, s } from "headscope/dom.js";

/** @import { Segmentation, Way } from "headscope/types.js" */

const [WIDTH, HEIGHT, BELOW, ABOVE] = [300, 96, 14, 6];

/**
 * What the layout adds stands on top of the score, so that one line is the cost of every boundary.
 *
 * @param {Pick<Way, "scores" | "cuts" | "price">} way
 * @param {Pick<Segmentation, "learned" | "layout">} found
 * @param {(unit: number) => void} choose
 */
export function boundaryChart({ scores, cuts, price: cost }, { learned, layout }, choose) {
  const boundaries = new Set(cuts);
  const worths = scores.map((score, unit) => score + (layout[unit] ?? 0));
  const top = Math.max(cost, ...worths, 1e-9) * 1.05;
  const bottom = Math.min(0, ...worths);
  const y = (/** @type {number} */ value) =>
    ABOVE + ((top - value) / (top - bottom)) * (HEIGHT - ABOVE - BELOW);
  const step = WIDTH / Math.max(scores.length - 1, 1);
  const short = (/** @type {number} */ value) => number(Number(value.toPrecision(3)));
  const drawing = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "boundaries",
    role: "img",
    "aria-label": `Boundaries: before sentences ${cuts.map((cut) => cut + 1).join(", ") || "none"}`,
  });
  scores.forEach((score, unit) => {
    if (!unit) return;
    const [worth, added] = [worths[unit], layout[unit]];
    const likeness = `${short(score - learned[unit])} from similarity, ${short(learned[unit])} learned`;
    const parts = added ? `${likeness}, ${short(added)} for the layout` : likeness;
    const kind = added === null ? "bar other barred" : "bar other";
    drawing.append(
      s(
        "rect",
        {
          x: (unit - 1) * step + step * 0.1,
          y: y(Math.max(worth, 0)),
          width: Math.max(step * 0.8, 0.5),
          height: Math.max(Math.abs(y(worth) - y(0)), 0.5),
          class: boundaries.has(unit) ? "bar" : kind,
          onclick: () => choose(unit),
        },
        s("title", {}, `before sentence ${unit + 1}: ${short(worth)} (${parts})`),
      ),
    );
  });
  drawing.append(
    s("line", { x1: 0, x2: WIDTH, y1: y(0), y2: y(0), class: "axis" }),
    s("line", { x1: 0, x2: WIDTH, y1: y(cost), y2: y(cost), class: "cost" }),
    s("text", { x: WIDTH, y: y(cost) - 3, "text-anchor": "end" }, short(cost)),
    s("text", { x: WIDTH / 2, y: HEIGHT - 2, "text-anchor": "middle" }, "sentences, first to last"),
  );
  return drawing;
}
//# sourceURL=headscope/scores.js
