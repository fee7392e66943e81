// The text cut into topics: a slider for how finely, the text in bands, and why it is cut there.

import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h, number, percent, shortened } from "headscope/dom.js";
import { Matrix } from "headscope/matrix.js";
import { boundaryChart } from "headscope/scores.js";
import { theme } from "headscope/theme.js";

export class Segments {
  constructor(session) {
    this.session = session;
    this.slider = h("input", {
      type: "range",
      min: "0",
      step: "1",
      "aria-label": "Granularity of the segments",
      oninput: () => session.state.set({ granularity: this.found.granularities[Number(this.slider.value)] }),
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
            h("i", { class: "key line" }),
            "what a boundary costs",
          ),
        ),
        h("section", {}, h("h2", {}, "How alike the sentences are"), this.matrix.element, this.noKernel),
        h("section", {}, h("h2", {}, "Heads that tell the segments apart"), this.heads),
        this.about,
      ),
    );
    this.page.addEventListener("pointerover", ({ target }) => {
      const unit = target.closest?.("[data-unit]");
      this.point(unit ? Number(unit.dataset.unit) : undefined);
    });
    this.page.addEventListener("pointerleave", () => this.point());
  }

  async update() {
    const { session } = this;
    const { reading } = session;
    if (this.reading !== reading)
      this.page.replaceChildren(h("p", { class: "hint" }, "Reading every sentence on its own …"));
    const found = await session.segments(reading);
    if (reading !== session.reading) return;
    if (this.reading !== reading) this.take(reading, found);
    const step = nearest(found.granularities, Number(session.state.values.granularity));
    this.way = found.ways[found.way[step]];
    this.scores = this.way.scores;
    const granularity = found.granularities[step];
    const count = this.way.cuts.length + 1;
    const segments = count === 1 ? "1 segment" : `${count} segments`;
    this.slider.max = String(found.granularities.length - 1);
    this.slider.value = String(step);
    this.slider.setAttribute("aria-valuetext", `granularity ${granularity}: ${segments}`);
    this.amount.value = `granularity ${granularity}: ${segments} of ${this.units.length} sentences`;
    this.write();
    const cost = found.penalty / granularity;
    const goTo = (unit) => this.goTo(unit);
    this.chart.replaceChildren(boundaryChart(this.way, found.learned, cost, goTo));
    this.listHeads();
    await this.drawKernel();
    this.point();
  }

  /** A new text: its sentences as lists of tokens, and its kernel, unpacked. */
  take(reading, found) {
    const { tokens } = reading;
    Object.assign(this, { reading, found, units: found.starts.map(() => []), values: null });
    let unit = 0;
    tokens.shown.forEach((_, position) => {
      if (tokens.special[position]) return;
      while (unit + 1 < found.starts.length && position >= found.starts[unit + 1]) unit++;
      this.units[unit].push(position);
    });
    const size = found.starts.length;
    const many = `Not drawn: ${size.toLocaleString("en")} sentences are too many.`;
    this.noKernel.textContent = found.kernel ? "" : many;
    this.matrix.element.hidden = !found.kernel;
    if (!found.kernel) return;
    this.values = new Float32Array(size * size);
    let at = 0;
    for (let i = 0; i < size; i++) {
      for (let j = i; j < size; j++) {
        this.values[i * size + j] = this.values[j * size + i] = found.kernel[at++] / 1000;
      }
    }
    const apart = this.values.filter((_, k) => Math.floor(k / size) !== k % size).sort();
    const end = Math.max(0, apart.length - 1);
    this.range = apart.length ? [apart[Math.round(0.01 * end)], apart[Math.round(0.99 * end)]] : [0, 1];
    this.about.textContent =
      "Every sentence is read on its own. Boundaries are where some heads find sentences unlike, and where " +
      `it looks like a boundary in what was learned from ${found.made_from}.`;
  }

  /** The text in its segments; every token, so that it can be exported as it stands. */
  write() {
    const { tokens, header } = this.reading;
    const edges = [0, ...this.way.cuts, this.units.length];
    const blocks = [];
    edges.slice(0, -1).forEach((first, k) => {
      const score = k ? `score ${number(Number(this.scores[first].toPrecision(3)))}` : "";
      const block = h("div", {
        class: `segment s${k % 3}`,
        role: "group",
        "aria-label": `Segment ${k + 1} of ${edges.length - 1}${k ? `, its boundary's ${score}` : ""}`,
        "data-said": `${k + 1}${k ? ` · ${score}` : ""}`,
      });
      for (let unit = first; unit < edges[k + 1]; unit++) {
        const span = h("span", { class: "unit", "data-unit": unit });
        this.units[unit].forEach((position, place) => {
          const before = tokens.before[position];
          // What stands between two segments ends the one before it.
          if (before) (place ? span : unit === first ? (blocks.at(-1) ?? block) : block).append(before);
          span.append(h("span", { class: "token" }, tokens.shown[position]));
        });
        block.append(span);
      }
      blocks.push(block);
    });
    this.page.replaceChildren(...blocks, header.after);
    this.spans = [...this.page.querySelectorAll(".unit")];
  }

  /** How alike the sentences are, as a picture; null where there are too many. */
  async picture(inks = theme()) {
    if (!this.values) return null;
    const { from, to, colours } = scaleOf("centred", this.range, inks);
    const question = { values: this.values, size: this.units.length, scale: { from, to, colours } };
    return (await this.session.compute.ask("paint", question)).picture;
  }

  async drawKernel() {
    if (!this.values) return;
    const [size, segment] = [this.units.length, this.segmentOf()];
    const { reading, way, values } = this;
    const picture = await this.picture();
    if (this.reading !== reading || this.way !== way) return;
    const positions = Int32Array.from(values.keys()).subarray(0, size);
    const tokens = { sentence: segment, piece: [] };
    this.matrix.show({ values, size, positions, range: this.range }, { kind: "centred", tokens, picture });
  }

  segmentOf() {
    const cuts = new Set(this.way.cuts);
    let segment = 0;
    return this.units.map((_, unit) => (cuts.has(unit) ? ++segment : segment));
  }

  listHeads() {
    const { state } = this.session;
    this.heads.replaceChildren(
      ...this.way.heads.map(([layer, head, share]) =>
        h(
          "li",
          {},
          h("span", { class: "value" }, percent(share)),
          h(
            "button",
            { type: "button", class: "plain both", onclick: () => state.set({ view: "head", layer, head }) },
            `Layer ${layer}, head ${head}`,
          ),
          h("bdi", { class: "apart plain" }, this.session.card(layer, head)?.label ?? ""),
        ),
      ),
    );
    if (!this.way.heads.length)
      this.heads.replaceChildren(h("li", { class: "hint" }, "One sentence cannot be cut."));
  }

  goTo(unit) {
    this.spans[unit].scrollIntoView({ block: "center" });
    this.point(unit);
  }

  /** Say and show one sentence, or two, and shade the others by how alike they are to it. */
  point(i, j) {
    if (!this.spans) return;
    const size = this.units.length;
    const row = i === undefined || !this.values ? null : this.values.subarray(i * size, (i + 1) * size);
    const scale = scaleOf("centred", this.range ?? [0, 1], theme());
    this.spans.forEach((span, unit) => {
      span.style.backgroundColor = row ? cssColour(scale, row[unit]) : "";
      span.style.color = row ? (isPale(scale, row[unit]) ? "#111" : "#fff") : "";
      span.classList.toggle("chosen", unit === i || unit === j);
    });
    if (this.values) this.matrix.drawOver(i === undefined ? null : [i, j ?? i]);
    this.readout.replaceChildren(...this.said(i, j));
  }

  said(i, j) {
    const line = (text) => h("span", { class: "line" }, text);
    const name = (unit) =>
      h("b", { class: "line" }, `${unit + 1}. `, h("bdi", {}, shortened(this.spans[unit].textContent, 70)));
    if (i === undefined) {
      const blue = "Point at a sentence: the others turn blue where the heads find them like it";
      return [h("span", { class: "hint" }, `${blue}, orange where not.`)];
    }
    if (j !== undefined && j !== i) {
      return [name(i), name(j), line(`similarity ${number(this.values[i * this.units.length + j])}`)];
    }
    if (i === 0) return [name(0), line("the first sentence")];
    const is = this.way.cuts.includes(i) ? "a boundary before it has" : "a boundary before it would have";
    const taught = this.found.learned[i];
    const [score, alike, learned] = [this.scores[i], this.scores[i] - taught, taught].map((value) =>
      number(Number(value.toPrecision(3))),
    );
    return [
      name(i),
      line(`${is} score ${score}: ${alike} from similarity, ${learned} from what was learned of boundaries`),
    ];
  }

  csv() {
    const segment = this.segmentOf();
    const head = ["sentence", "segment", "boundary", "score", "similarity", "learned", "text"];
    const rows = this.units.map((_, unit) => [
      unit + 1,
      segment[unit] + 1,
      this.way.cuts.includes(unit),
      this.scores[unit],
      Number((this.scores[unit] - this.found.learned[unit]).toFixed(4)),
      this.found.learned[unit],
      this.spans[unit].textContent,
    ]);
    return [head, ...rows];
  }
}

function nearest(values, wanted) {
  const apart = (value) => Math.abs(Math.log(value / (wanted > 0 ? wanted : 1)));
  return values.reduce((best, value, at) => (apart(value) < apart(values[best]) ? at : best), 0);
}
//# sourceURL=headscope/segments.js
