// The text cut into topics: a slider for how finely, the text in bands, and why it is cut there.

import { labelsOf } from "headscope/card.js";
import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h, number, percent, shortened, waiting } from "headscope/dom.js";
import { Legend } from "headscope/legend.js";
import { Matrix } from "headscope/matrix.js";
import { boundaryChart } from "headscope/scores.js";
import { theme } from "headscope/theme.js";
import { UNKNOWN } from "headscope/words.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Opened, Range, Segmentation, Way } from "headscope/types.js" */

/** How alike every two sentences are. */
/** @typedef {{values: Float32Array, range: Range}} Kernel */

/**
 * A text in its sentences, and one way of cutting it.
 *
 * @typedef {object} Cut
 * @property {Opened} reading
 * @property {Segmentation} found
 * @property {number[][]} units the positions of each sentence's tokens
 * @property {Kernel | null} kernel
 * @property {Way} way
 */

export class Segments {
  /** @type {Cut | null} */
  cut = null;
  /** @type {HTMLElement[]} */
  spans = []; // a span for each sentence

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.slider = h("input", {
      type: "range",
      min: "0",
      step: "1",
      "aria-label": "Granularity of the segments",
      oninput: () => {
        const chosen = this.cut?.found.granularities[Number(this.slider.value)];
        if (chosen !== undefined) session.state.set({ granularity: chosen });
      },
    });
    this.amount = h("output", { class: "amount" });
    this.page = h("div", { class: "page", lang: "", dir: "auto" });
    const named = { tabindex: "0", role: "region", "aria-label": "The text in segments" };
    this.sheet = h("div", { class: "sheet", ...named }, this.page);
    this.readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
    this.chart = h("div");
    this.matrix = new Matrix({
      labelled: false,
      lines: "ink",
      label: "How alike every two sentences are",
      hover: (i, j) => this.point(i, j),
    });
    this.legend = new Legend(
      "From the 1st to the 99th percentile of two sentences, equally far both ways from 0",
    );
    this.noKernel = h("p", { class: "hint" });
    this.heads = h("ol", { class: "pairs", "aria-label": "Heads that tell the segments apart" });
    this.about = h("p", { class: "hint" });
    this.element = h(
      "div",
      { class: "split segments" },
      h(
        "div",
        { class: "left" },
        h(
          "div",
          { class: "row" },
          h("label", { class: "slide" }, "coarse", this.slider, "fine"),
          this.amount,
        ),
        this.sheet,
      ),
      h(
        "aside",
        { class: "panel", "aria-label": "Why the text is cut there" },
        this.readout,
        h(
          "section",
          {},
          h("h2", {}, "What a boundary before each sentence is worth"),
          this.chart,
          h(
            "p",
            { class: "hint" },
            h("i", { class: "key bar" }),
            "a boundary ",
            h("i", { class: "key other" }),
            "none ",
            h("i", { class: "key barred" }),
            "no place for one ",
            h("i", { class: "key line" }),
            "what a boundary costs",
          ),
        ),
        h(
          "section",
          {},
          h("h2", {}, "How alike the sentences are"),
          this.legend.element,
          this.matrix.element,
          this.noKernel,
        ),
        h("section", {}, h("h2", {}, "Heads that tell the segments apart"), this.heads),
        this.about,
      ),
    );
    this.page.addEventListener("pointerover", ({ target }) => {
      const unit = target instanceof Element ? target.closest("[data-unit]") : null;
      this.point(unit instanceof HTMLElement ? Number(unit.dataset.unit) : undefined);
    });
    this.page.addEventListener("pointerleave", () => this.point());
  }

  async update() {
    const { session } = this;
    const { current: reading } = session;
    if (this.cut?.reading !== reading)
      this.page.replaceChildren(waiting("Reading every sentence on its own"));
    const found = await session.segments(reading);
    if (reading !== session.reading) return;
    const step = nearest(found.granularities, Number(session.state.values.granularity));
    const way = found.ways[found.way[step]];
    const cut = this.cut?.reading === reading ? { ...this.cut, way } : this.take(reading, found, way);
    this.cut = cut;
    const granularity = found.granularities[step];
    const count = way.cuts.length + 1;
    const segments = count === 1 ? "1 segment" : `${count} segments`;
    this.slider.max = String(found.granularities.length - 1);
    this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `granularity ${granularity}: ${segments}`);
    this.amount.value = `granularity ${granularity}: ${segments} of ${cut.units.length} sentences`;
    this.write(cut);
    this.chart.replaceChildren(boundaryChart(way, found, (unit) => this.goTo(unit)));
    this.listHeads(way);
    await this.drawKernel(cut);
    this.point();
  }

  /**
   * A new text: its sentences as lists of tokens, and its kernel, unpacked.
   *
   * @param {Opened} reading
   * @param {Segmentation} found
   * @param {Way} way
   * @returns {Cut}
   */
  take(reading, found, way) {
    const { tokens } = reading;
    /** @type {number[][]} */
    const units = found.starts.map(() => []);
    let unit = 0;
    tokens.shown.forEach((_, position) => {
      if (tokens.special[position]) return;
      while (unit + 1 < found.starts.length && position >= found.starts[unit + 1]) unit++;
      units[unit].push(position);
    });
    const kernel = found.kernel && unpacked(found.kernel, units.length);
    const many = `Not drawn: ${units.length.toLocaleString("en")} sentences are too many.`;
    this.noKernel.textContent = kernel ? "" : many;
    this.matrix.element.hidden = this.legend.element.hidden = !kernel;
    if (kernel) this.legend.show(scaleOf("centred", kernel.range, theme()));
    this.about.textContent =
      "Every sentence is read on its own. Boundaries are where some heads find sentences unlike, and where " +
      `it looks like a boundary in what was learned from ${found.made_from}.`;
    return { reading, found, units, kernel, way };
  }

  /**
   * The text in its segments; every token, so that it can be exported as it stands.
   *
   * @param {Cut} cut
   */
  write({ reading: { tokens, header }, units, way }) {
    const edges = [0, ...way.cuts, units.length];
    /** @type {HTMLElement[]} */
    const blocks = [];
    edges.slice(0, -1).forEach((first, k) => {
      const score = k ? `score ${number(Number(way.scores[first].toPrecision(3)))}` : "";
      const block = h("div", {
        class: `segment s${k % 3}`,
        role: "group",
        "aria-label": `Segment ${k + 1} of ${edges.length - 1}${k ? `, its boundary's ${score}` : ""}`,
        "data-said": `${k + 1}${k ? ` · ${score}` : ""}`,
      });
      for (let unit = first; unit < edges[k + 1]; unit++) {
        const span = h("span", { class: "unit", "data-unit": unit });
        units[unit].forEach((position, place) => {
          const before = tokens.before[position];
          // What stands between two segments ends the one before it.
          if (before) (place ? span : unit === first ? (blocks.at(-1) ?? block) : block).append(before);
          const unknown = tokens.unknown[position];
          const how = { class: unknown ? "token unknown" : "token", title: unknown ? UNKNOWN : null };
          span.append(h("span", how, tokens.shown[position]));
        });
        block.append(span);
      }
      blocks.push(block);
    });
    this.page.replaceChildren(...blocks, header.after);
    this.spans = blocks.flatMap(
      (block) => /** @type {HTMLElement[]} */ ([...block.querySelectorAll(".unit")]),
    );
  }

  /** How alike the sentences are, as a picture; null where there are too many. */
  async picture(inks = theme()) {
    if (!this.cut?.kernel) return null;
    const { values, range } = this.cut.kernel;
    const { from, to, colours } = scaleOf("centred", range, inks);
    const question = { values, size: this.cut.units.length, scale: { from, to, colours } };
    return (await this.session.compute.ask("paint", question)).picture;
  }

  /** @param {Cut} cut */
  async drawKernel(cut) {
    const picture = await this.picture();
    if (!cut.kernel || !picture || this.cut !== cut) return;
    const [size, sentence] = [cut.units.length, segmentOf(cut)];
    const positions = Int32Array.from({ length: size }, (_, unit) => unit);
    const how = { kind: /** @type {const} */ ("centred"), tokens: { sentence }, names: [], picture };
    this.matrix.show({ ...cut.kernel, size, positions }, how);
  }

  /** @param {Way} way */
  listHeads(way) {
    const { state } = this.session;
    this.heads.replaceChildren(
      ...way.heads.map(([layer, head, share]) =>
        h(
          "li",
          {},
          h("span", { class: "value" }, percent(share)),
          h(
            "button",
            { type: "button", class: "plain both", onclick: () => state.set({ view: "head", layer, head }) },
            `Layer ${this.session.layerNumber(layer)}, head ${head}`,
          ),
          h("bdi", { class: "apart plain" }, labelsOf(this.session.card(layer, head))),
        ),
      ),
    );
    if (!way.heads.length)
      this.heads.replaceChildren(h("li", { class: "hint" }, "One sentence cannot be cut."));
  }

  /** @param {number} unit */
  goTo(unit) {
    this.spans[unit].scrollIntoView({ block: "center" });
    this.point(unit);
  }

  /**
   * Say and show one sentence, or two, and shade the others by how alike they are to it.
   *
   * @param {number} [i]
   * @param {number} [j]
   */
  point(i, j) {
    if (!this.cut) return;
    const { kernel, units } = this.cut;
    const size = units.length;
    const row = i === undefined || !kernel ? null : kernel.values.subarray(i * size, (i + 1) * size);
    const scale = scaleOf("centred", kernel?.range ?? [0, 1], theme());
    this.spans.forEach((span, unit) => {
      span.style.backgroundColor = row ? cssColour(scale, row[unit]) : "";
      span.style.color = row ? (isPale(scale, row[unit]) ? "#111" : "#fff") : "";
      span.classList.toggle("chosen", unit === i || unit === j);
    });
    this.matrix.drawOver(i === undefined ? null : [i, j ?? i]);
    this.readout.replaceChildren(...this.said(this.cut, i, j));
  }

  /**
   * @param {Cut} cut
   * @param {number} [i]
   * @param {number} [j]
   */
  said({ found, kernel, units, way }, i, j) {
    const line = (/** @type {string} */ text) => h("span", { class: "line" }, text);
    const name = (/** @type {number} */ unit) =>
      h("b", { class: "line" }, `${unit + 1}. `, h("bdi", {}, shortened(this.spans[unit].textContent, 70)));
    if (i === undefined) {
      const blue = "Point at a sentence: the others turn blue where the heads find them like it";
      return [h("span", { class: "hint" }, `${blue}, orange where not.`)];
    }
    if (j !== undefined && j !== i && kernel) {
      return [name(i), name(j), line(`similarity ${number(kernel.values[i * units.length + j])}`)];
    }
    if (i === 0) return [name(0), line("the first sentence")];
    const is = way.cuts.includes(i) ? "a boundary before it has" : "a boundary before it would have";
    const taught = found.learned[i];
    const [score, alike, learned] = [way.scores[i], way.scores[i] - taught, taught].map((value) =>
      number(Number(value.toPrecision(3))),
    );
    const worth = `${score}: ${alike} from similarity, ${learned} learned`;
    return [name(i), line(`${is} score ${worth}`), line(placed(found.layout[i], way.price))];
  }

  csv() {
    if (!this.cut) return [];
    const { units, way, found } = this.cut;
    const segment = segmentOf(this.cut);
    const head = ["sentence", "segment", "boundary", "score", "similarity", "learned", "layout", "text"];
    const rows = units.map((_, unit) => [
      unit + 1,
      segment[unit] + 1,
      way.cuts.includes(unit),
      way.scores[unit],
      Number((way.scores[unit] - found.learned[unit]).toFixed(4)),
      found.learned[unit],
      found.layout[unit] ?? "",
      this.spans[unit].textContent,
    ]);
    return [head, ...rows];
  }
}

/**
 * What a boundary costs at a place, by what the layout adds to its worth; null where none may be.
 *
 * @param {number | null} layout
 * @param {number} price
 */
function placed(layout, price) {
  if (layout === null) return "no place for a boundary: inside a paragraph, or kept with what stands before";
  const cost = `a boundary costs ${number(Number((price - layout).toPrecision(3)))} here`;
  return layout ? `${cost}, ${number(Number(layout.toPrecision(3)))} less for the layout` : cost;
}

/**
 * The segment of each sentence.
 *
 * @param {Cut} cut
 */
function segmentOf({ units, way }) {
  const cuts = new Set(way.cuts);
  let segment = 0;
  return units.map((_, unit) => (cuts.has(unit) ? ++segment : segment));
}

/**
 * The upper triangle of the kernel, in thousandths, as a matrix.
 *
 * @param {number[]} upper
 * @param {number} size
 * @returns {Kernel}
 */
function unpacked(upper, size) {
  const values = new Float32Array(size * size);
  let at = 0;
  for (let i = 0; i < size; i++) {
    for (let j = i; j < size; j++) values[i * size + j] = values[j * size + i] = upper[at++] / 1000;
  }
  const apart = values.filter((_, k) => Math.floor(k / size) !== k % size).sort();
  const last = Math.max(0, apart.length - 1);
  return {
    values,
    range: apart.length ? [apart[Math.round(0.01 * last)], apart[Math.round(0.99 * last)]] : [0, 1],
  };
}

/**
 * The place of the value that is nearest to one, by their ratio.
 *
 * @param {number[]} values
 * @param {number} wanted
 */
function nearest(values, wanted) {
  const apart = (/** @type {number} */ value) => Math.abs(Math.log(value / (wanted > 0 ? wanted : 1)));
  return values.reduce((best, value, at) => (apart(value) < apart(values[best]) ? at : best), 0);
}
//# sourceURL=headscope/segments.js
