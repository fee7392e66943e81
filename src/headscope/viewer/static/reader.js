// The text as text: point at a token and the others are shaded by their similarity to it.

import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h, s } from "headscope/dom.js";
import { rowAt } from "headscope/head.js";
import { Marks } from "headscope/marks.js";
import { Panel } from "headscope/panel.js";
import { theme } from "headscope/theme.js";
import { aboutUnknown, UNKNOWN } from "headscope/words.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Changed, Matrix, Pairs, Scale } from "headscope/types.js" */

const MOST_ARCS = 12;

export class Reader {
  /** @type {{matrix: Matrix, found: Pairs} | null} */
  shown = null;
  /** @type {HTMLSpanElement[]} */
  spans = []; // of the tokens or words that are shown
  /** @type {number | undefined} */
  index; // the token pointed at
  /** @type {number | undefined} */
  partner; // the other one of a pair
  /** @type {number | undefined} */
  held; // the token held on to

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.panel = new Panel(session, (i, j) => this.hover(i, j));
    this.page = h("div", { class: "page", lang: "", dir: "auto" });
    this.arcs = s("svg", { class: "arcs", "aria-hidden": "true" });
    this.sheet = h("div", { class: "sheet", tabindex: "0", "aria-label": "The text" }, this.page, this.arcs);
    this.about = h("p", { class: "hint" });
    this.marks = new Marks(session);
    this.element = h(
      "div",
      { class: "split" },
      h("div", { class: "left" }, h("div", { class: "row" }, this.about), this.marks.element, this.sheet),
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

  /** @param {EventTarget | null} target */
  indexOf(target) {
    const token = target instanceof Element ? target.closest("[data-index]") : null;
    return token instanceof HTMLElement ? Number(token.dataset.index) : undefined;
  }

  /** @param {number} index */
  pin(index) {
    if (!this.shown) return;
    const position = this.shown.matrix.positions[index];
    this.session.state.set({ token: position === this.session.state.token ? null : position });
  }

  /** @param {Changed} changed */
  async update(changed = null) {
    const { session } = this;
    const { state, current: reading } = session;
    const asked = state.address();
    if (changed === null || changed.has("special") || changed.has("unit")) this.write();
    const coloured = state.values.communities === "shown";
    const [matrix, found, communities] = await Promise.all([
      session.matrix(reading, state.layer, state.head, state.values.reading),
      session.pairs(reading, state.layer, state.head),
      coloured ? session.communities(reading, state.layer, state.head) : null,
    ]);
    if (state.address() !== asked || reading !== session.reading) return;
    this.shown = { matrix, found };
    this.panel.show(matrix, found);
    this.underline(found);
    this.marks.show(communities);
    this.held = rowAt(matrix.positions, state.token) ?? undefined;
    this.shade(this.held);
    this.panel.read(this.held, this.held);
  }

  /** The text itself: a span for each token or word, what stands between them as it is. */
  write() {
    const { tokens, header } = this.session.current;
    const { special, unit } = this.session.state.values;
    const hide = special === "left_out";
    let window = tokens.window[0];
    const goesOn = (/** @type {number} */ position) =>
      unit === "word" &&
      tokens.word_number[position] >= 0 &&
      tokens.word_number[position] === tokens.word_number[position - 1];
    [this.spans, this.shown, this.index] = [[], null, undefined]; // of the text before
    /** @type {(Node | string)[]} */
    const parts = [];
    tokens.shown.forEach((shown, position) => {
      if (goesOn(position)) {
        this.spans.at(-1)?.append(tokens.before[position], shown);
        return;
      }
      if (tokens.before[position]) parts.push(tokens.before[position]);
      if (tokens.special[position] && hide) return;
      if (tokens.window[position] !== window) {
        window = tokens.window[position];
        const title = `Here window ${window + 1} of ${header.windows} begins: tokens before and after were read apart.`;
        parts.push(
          h("span", {
            class: "seam",
            role: "separator",
            "data-window": window + 1,
            title,
            "aria-label": title,
          }),
        );
      }
      const kind = tokens.special[position] ? " special" : shown === "" ? " part" : "";
      const unknown = tokens.unknown[position];
      const span = h(
        "span",
        {
          class: `token${kind}${unknown ? " unknown" : ""}`,
          title: unknown ? UNKNOWN : null,
          "data-index": this.spans.length,
          "data-position": position,
        },
        shown === "" ? "·" : shown,
      );
      this.spans.push(span);
      parts.push(span);
      if (tokens.special[position]) parts.push(" ");
    });
    this.page.replaceChildren(...parts, header.after);
    this.marks.paint(this.spans);
  }

  /**
   * Underlines: the more high pairs a token takes part in, the stronger.
   *
   * @param {Pairs} found
   */
  underline({ takingPart }) {
    const most = Math.max(1, ...takingPart);
    this.spans.forEach((span, k) => {
      const share = takingPart[k] / most;
      span.style.setProperty("--part", share ? (0.25 + 0.75 * Math.sqrt(share)).toFixed(3) : "0");
    });
    const none = takingPart.filter((count) => !count).length;
    const shade =
      this.session.state.values.reading === "centred"
        ? "the others: blue where more similar to it than the mean of the text, orange where less"
        : "the half of the others that is more similar to it";
    const name = this.session.state.values.unit;
    const unknown = aboutUnknown(this.session.current.tokens);
    const said = [
      `Underlined ${name}s take part in high pairs, the stronger the more. Point at a ${name} to shade`,
      `${shade}, with arcs to its high pairs; click to hold on to it.`,
      `${none} of ${this.spans.length} ${name}s are in no high pair.`,
      unknown.much ? "" : unknown.text, // much is told above every view
    ];
    this.about.textContent = said.join(" ");
  }

  /**
   * @param {number} [i]
   * @param {number} [j]
   */
  hover(i, j) {
    const index = i ?? this.held;
    this.shade(index, i === undefined ? undefined : j);
    this.panel.read(index, j ?? index);
  }

  /**
   * Shade every token by its similarity to one, and draw arcs to its high pairs.
   *
   * @param {number} [index]
   * @param {number} [partner]
   */
  shade(index, partner) {
    if (!this.shown) return;
    const { matrix, found } = this.shown;
    const { values, size } = matrix;
    [this.index, this.partner] = [index, partner];
    const scale = index === undefined ? null : this.rowScale(matrix, index);
    const [first, last] = this.seen();
    this.spans.slice(first, last).forEach((span, offset) => {
      const k = first + offset;
      const value = index === undefined ? 0 : values[index * size + k];
      span.style.backgroundColor = scale ? cssColour(scale, value) : "";
      span.style.color = scale ? (isPale(scale, value) ? "#111" : "#fff") : "";
      span.classList.toggle("chosen", k === index);
    });
    if (index === undefined) this.arcs.replaceChildren();
    else this.drawArcs(index, partner === undefined ? partners(matrix, found, index) : [partner]);
  }

  /** Which tokens are on screen, with some to spare: the rest is shaded when it is scrolled to. */
  seen() {
    const [top, bottom] = [this.sheet.scrollTop - 200, this.sheet.scrollTop + this.sheet.clientHeight + 200];
    const after = (/** @type {number} */ height) => {
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

  /**
   * From the middle of the other tokens to the most similar: the less similar half stays plain.
   *
   * @param {Matrix} matrix
   * @param {number} index
   * @returns {Scale}
   */
  rowScale({ values, size }, index) {
    const row = values
      .slice(index * size, (index + 1) * size)
      .filter((_, k) => k !== index)
      .sort();
    const [low, high] = row.length ? [row[row.length >> 1], row[row.length - 1]] : [0, 1];
    return scaleOf(this.session.state.values.reading, [low, high], theme());
  }

  /**
   * @param {number} index
   * @param {number[]} ends
   */
  drawArcs(index, ends) {
    this.arcs.replaceChildren();
    const frame = this.page.getBoundingClientRect();
    this.arcs.setAttribute("width", String(this.page.scrollWidth));
    this.arcs.setAttribute("height", String(this.page.scrollHeight));
    const place = (/** @type {number} */ k) => {
      const box = this.spans[k].getBoundingClientRect();
      return [box.left + box.width / 2 - frame.left, box.top - frame.top];
    };
    const [x1, y1] = place(index);
    for (const k of ends) {
      const [x2, y2] = place(k);
      const rise = Math.min(60, 14 + Math.hypot(x2 - x1, y2 - y1) / 6);
      this.arcs.append(s("path", { d: `M${x1},${y1} C${x1},${y1 - rise} ${x2},${y2 - rise} ${x2},${y2}` }));
    }
  }
}

/**
 * The other ends of a token's high pairs, most similar first.
 *
 * @param {Matrix} matrix
 * @param {Pairs} found
 * @param {number} index
 */
export function partners({ values, size }, { reach, windows }, index) {
  const value = (/** @type {number} */ k) => values[index * size + k];
  const takesPart = (/** @type {number} */ k) => !windows || windows[k] === windows[index];
  return Array.from({ length: size }, (_, k) => k)
    .filter((k) => k !== index && (value(k) >= reach[index] || value(k) >= reach[k]) && takesPart(k))
    .sort((a, b) => value(b) - value(a))
    .slice(0, MOST_ARCS);
}
//# sourceURL=headscope/reader.js
