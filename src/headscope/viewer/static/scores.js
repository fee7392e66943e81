// The worth of a boundary before every sentence, as bars: those that are boundaries stand out.

import { number, s } from "headscope/dom.js";

const [WIDTH, HEIGHT, BELOW, ABOVE] = [300, 96, 14, 6];

export function boundaryChart({ scores, cuts }, learned, cost, choose) {
  const boundaries = new Set(cuts);
  const top = Math.max(cost, ...scores, 1e-9) * 1.05;
  const bottom = Math.min(0, ...scores);
  const y = (value) => ABOVE + ((top - value) / (top - bottom)) * (HEIGHT - ABOVE - BELOW);
  const step = WIDTH / Math.max(scores.length - 1, 1);
  const short = (value) => number(Number(value.toPrecision(3)));
  const drawing = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "boundaries",
    role: "img",
    "aria-label": `Boundaries: before sentences ${cuts.map((cut) => cut + 1).join(", ") || "none"}`,
  });
  scores.forEach((score, unit) => {
    if (!unit) return;
    const parts = `${short(score - learned[unit])} from similarity, ${short(learned[unit])} learned`;
    drawing.append(
      s(
        "rect",
        {
          x: (unit - 1) * step + step * 0.1,
          y: y(Math.max(score, 0)),
          width: Math.max(step * 0.8, 0.5),
          height: Math.max(Math.abs(y(score) - y(0)), 0.5),
          class: boundaries.has(unit) ? "bar" : "bar other",
          onclick: () => choose(unit),
        },
        s("title", {}, `before sentence ${unit + 1}: ${short(score)} (${parts})`),
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
