// The text as text: point at a token and the others are shaded by their similarity to it.

import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h, s } from "headscope/dom.js";
import { rowAt } from "headscope/head.js";
import { Panel } from "headscope/panel.js";
import { theme } from "headscope/theme.js";

const MOST_ARCS = 12;

export class Reader {
  constructor(session) {
    this.session = session;
    this.panel = new Panel(session, (i, j) => this.hover(i, j));
    this.page = h("div", { class: "page", lang: "", dir: "auto" });
    this.arcs = s("svg", { class: "arcs", "aria-hidden": "true" });
    this.sheet = h("div", { class: "sheet", tabindex: "0", "aria-label": "The text" }, this.page, this.arcs);
    this.about = h("p", { class: "hint" });
    this.element = h(
      "div",
      { class: "split" },
      h("div", { class: "left" }, h("div", { class: "row" }, this.about), this.sheet),
      this.panel.element,
    );
    this.page.addEventListener("pointerover", (event) => this.hover(this.indexOf(event.target)));
    this.page.addEventListener("pointerleave", () => this.hover());
    this.page.addEventListener("click", (event) => {
      const index = this.indexOf(event.target);
      if (index !== undefined) this.pin(index);
    });
    this.sheet.addEventListener("scroll", () => this.shade(this.index, this.partner));
    this.watcher = new ResizeObserver(() => this.shade(this.index, this.partner));
    this.watcher.observe(this.sheet);
  }

  indexOf(target) {
    const token = target.closest?.("[data-index]");
    return token ? Number(token.dataset.index) : undefined;
  }

  pin(index) {
    const position = this.matrix.positions[index];
    this.session.state.set({ token: position === this.session.state.token ? null : position });
  }

  async update(changed = null) {
    const { session } = this;
    const { state, reading } = session;
    const asked = state.address();
    if (changed === null || changed.has("special") || changed.has("unit")) this.write();
    const [matrix, found] = await Promise.all([
      session.matrix(reading, state.layer, state.head, state.values.reading),
      session.pairs(reading, state.layer, state.head),
    ]);
    if (state.address() !== asked || reading !== session.reading) return;
    Object.assign(this, { matrix, found });
    this.panel.show(matrix, found);
    this.underline();
    this.held = rowAt(matrix.positions, state.token) ?? undefined;
    this.shade(this.held);
    this.panel.read(this.held, this.held);
  }

  /** The text itself: a span for each token or word, what stands between them as it is. */
  write() {
    const { tokens, header } = this.session.reading;
    const { special, unit } = this.session.state.values;
    const hide = special === "left_out";
    const goesOn = (position) =>
      unit === "word" &&
      tokens.word_number[position] >= 0 &&
      tokens.word_number[position] === tokens.word_number[position - 1];
    Object.assign(this, { spans: [], matrix: null, index: undefined }); // of the text before
    const parts = [];
    tokens.shown.forEach((shown, position) => {
      if (goesOn(position)) {
        this.spans.at(-1).append(tokens.before[position], shown);
        return;
      }
      if (tokens.before[position]) parts.push(tokens.before[position]);
      if (tokens.special[position] && hide) return;
      const kind = tokens.special[position] ? "token special" : shown === "" ? "token part" : "token";
      const span = h(
        "span",
        { class: kind, "data-index": this.spans.length, "data-position": position },
        shown === "" ? "·" : shown,
      );
      this.spans.push(span);
      parts.push(span);
      if (tokens.special[position]) parts.push(" ");
    });
    this.page.replaceChildren(...parts, header.after);
  }

  /** Underlines: the more high pairs a token takes part in, the stronger. */
  underline() {
    const most = Math.max(1, ...this.found.takingPart);
    this.spans.forEach((span, k) => {
      const share = this.found.takingPart[k] / most;
      span.style.setProperty("--part", share ? (0.25 + 0.75 * Math.sqrt(share)).toFixed(3) : "0");
    });
    const none = this.found.takingPart.filter((count) => !count).length;
    const shade =
      this.session.state.values.reading === "centred"
        ? "the others: blue where more similar to it than the mean of the text, orange where less"
        : "the half of the others that is more similar to it";
    const name = this.session.state.values.unit;
    this.about.textContent =
      `Underlined ${name}s take part in high pairs, the stronger the more. Point at a ${name} to shade ` +
      `${shade}, with arcs to its high pairs; click to hold on to it. ${none} of ${this.spans.length} ${name}s are in no high pair.`;
  }

  hover(i, j) {
    const index = i ?? this.held;
    this.shade(index, i === undefined ? undefined : j);
    this.panel.read(index, j ?? index);
  }

  /** Shade every token by its similarity to one, and draw arcs to its high pairs. */
  shade(index, partner) {
    if (!this.matrix) return;
    const { values, size } = this.matrix;
    this.index = index;
    this.partner = partner;
    if (index !== undefined) this.scale = this.rowScale(index);
    const [first, last] = this.seen();
    this.spans.slice(first, last).forEach((span, offset) => {
      const k = first + offset;
      const value = index === undefined ? null : values[index * size + k];
      span.style.backgroundColor = value === null ? "" : cssColour(this.scale, value);
      span.style.color = value === null ? "" : isPale(this.scale, value) ? "#111" : "#fff";
      span.classList.toggle("chosen", k === index);
    });
    this.drawArcs();
  }

  /** Which tokens are on screen, with some to spare: the rest is shaded when it is scrolled to. */
  seen() {
    const [top, bottom] = [this.sheet.scrollTop - 200, this.sheet.scrollTop + this.sheet.clientHeight + 200];
    const after = (height) => {
      let [low, high] = [0, this.spans.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.spans[middle].offsetTop < height) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return [after(top), after(bottom)];
  }

  /** From the middle of the other tokens to the most similar: the less similar half stays plain. */
  rowScale(index) {
    const { values, size } = this.matrix;
    const row = values
      .slice(index * size, (index + 1) * size)
      .filter((_, k) => k !== index)
      .sort();
    const range = row.length ? [row[row.length >> 1], row[row.length - 1]] : [0, 1];
    return scaleOf(this.session.state.values.reading, range, theme());
  }

  partners(index) {
    const { values, size } = this.matrix;
    const { reach } = this.found;
    const found = [];
    for (let k = 0; k < size; k++) {
      const value = values[index * size + k];
      if (k !== index && (value >= reach[index] || value >= reach[k])) found.push([value, k]);
    }
    return found
      .sort(([a], [b]) => b - a)
      .slice(0, MOST_ARCS)
      .map(([, k]) => k);
  }

  drawArcs() {
    this.arcs.replaceChildren();
    if (this.index === undefined || !this.matrix) return;
    const frame = this.page.getBoundingClientRect();
    this.arcs.setAttribute("width", String(this.page.scrollWidth));
    this.arcs.setAttribute("height", String(this.page.scrollHeight));
    const place = (k) => {
      const box = this.spans[k].getBoundingClientRect();
      return [box.left + box.width / 2 - frame.left, box.top - frame.top];
    };
    const ends = this.partner === undefined ? this.partners(this.index) : [this.partner];
    const [x1, y1] = place(this.index);
    for (const k of ends) {
      const [x2, y2] = place(k);
      const rise = Math.min(60, 14 + Math.hypot(x2 - x1, y2 - y1) / 6);
      this.arcs.append(s("path", { d: `M${x1},${y1} C${x1},${y1 - rise} ${x2},${y2 - rise} ${x2},${y2}` }));
    }
  }
}
//# sourceURL=headscope/reader.js
