// What the colours of a matrix or of a measure mean: a bar with a number at each end.

import { cssColour } from "headscope/colours.js";
import { h, number } from "headscope/dom.js";

/** @import { Scale } from "headscope/types.js" */

export const ROBUST =
  "From the 1st to the 99th percentile of the pairs without special tokens, so that a few pairs do not set it; " +
  "what lies beyond has the colour of that end";

export class Legend {
  constructor(title = ROBUST) {
    this.bar = h("i", { class: "bar" });
    this.ends = [h("span"), h("span")];
    const [low, high] = this.ends;
    this.element = h("span", { class: "scale", title, role: "img" }, low, this.bar, high);
  }

  /**
   * @param {Scale} scale
   * @param {[low: string, high: string]} said what stands at the ends
   */
  show(scale, said = [number(scale.from), number(scale.to)]) {
    const stops = Array.from({ length: 9 }, (_, k) =>
      cssColour(scale, scale.from + ((scale.to - scale.from) * k) / 8),
    );
    this.bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    said.forEach((text, end) => (this.ends[end].textContent = text));
    this.element.setAttribute("aria-label", `Colours from ${said[0]} to ${said[1]}`);
  }
}
//# sourceURL=headscope/legend.js
