// One head: its matrix with tokens on both sides, other readings beside it, and its high pairs.

import { scaleOf } from "headscope/colours.js";
import { h, messageOf } from "headscope/dom.js";
import { Legend } from "headscope/legend.js";
import { Matrix } from "headscope/matrix.js";
import { Panel } from "headscope/panel.js";
import { theme } from "headscope/theme.js";
import { READINGS } from "headscope/words.js";
import { Viewport } from "headscope/viewport.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Kind, Matrix as Numbers, Pairs, Reading } from "headscope/types.js" */
/** @typedef {ReturnType<Head["figure"]>} Figure */

/** @type {Kind[]} */
const KINDS = ["raw", "cosine", "centred", "attention"];

export class Head {
  /** @type {Map<Kind, Figure>} */
  shown = new Map();
  /** @type {Numbers | null} */
  main = null;
  /** @type {Pairs | null} */
  found = null;

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.viewport = new Viewport();
    this.panel = new Panel(session, (i, j) => this.hover(i, j));
    this.toggles = h("span", {
      class: "toggles",
      role: "group",
      "aria-label": "Matrices shown side by side",
    });
    this.board = h("div", { class: "board" });
    this.marks = h("input", { type: "checkbox", checked: true, onchange: () => this.update() });
    this.element = h(
      "div",
      { class: "split" },
      h(
        "div",
        { class: "left" },
        h(
          "div",
          { class: "row" },
          h("span", { class: "label" }, "Beside it ", this.toggles),
          h("label", {}, this.marks, " above the diagonal only high pairs stand out"),
          h("span", { class: "hint" }, "Wheel zooms, drag moves, double click shows all."),
        ),
        this.board,
      ),
      this.panel.element,
    );
  }

  /** @returns {[main: Reading, ...beside: Kind[]]} */
  kinds() {
    const { reading, beside } = this.session.state.values;
    const wanted = beside.split(",");
    return [reading, ...KINDS.filter((kind) => wanted.includes(kind) && kind !== reading)];
  }

  async update() {
    const { session } = this;
    const { state, current: reading } = session;
    const [layer, head, asked] = [state.layer, state.head, state.address()];
    this.drawToggles();
    const kinds = this.kinds();
    for (const [kind, figure] of this.shown) {
      if (kinds.includes(kind)) continue;
      figure.matrix.remove();
      figure.element.remove();
      this.shown.delete(kind);
    }
    this.board.dataset.count = String(kinds.length);
    for (const kind of kinds) {
      const figure = this.shown.get(kind) ?? this.figure(kind);
      this.shown.set(kind, figure);
      this.board.append(figure.element);
    }
    const [main, found] = await Promise.all([
      session.matrix(reading, layer, head, kinds[0]),
      session.pairs(reading, layer, head),
    ]);
    if (state.address() !== asked || reading !== session.reading) return;
    [this.main, this.found] = [main, found];
    this.panel.show(main, found);
    const marked = this.marks.checked;
    await Promise.all(kinds.map((kind) => this.fill(kind, layer, head, asked, marked && kind === kinds[0])));
  }

  /**
   * @param {Kind} kind
   * @param {number} layer
   * @param {number} head
   * @param {string} asked
   * @param {boolean} marked
   */
  async fill(kind, layer, head, asked, marked) {
    const { state, current: reading } = this.session;
    const figure = this.shown.get(kind);
    if (!figure) return;
    try {
      const matrix = await this.session.matrix(reading, layer, head, kind);
      const picture = await this.session.picture(reading, layer, head, kind, matrix, marked);
      if (state.address() !== asked || this.shown.get(kind) !== figure) return;
      const pinned = rowAt(matrix.positions, state.token);
      figure.note.textContent = "";
      figure.matrix.show(matrix, {
        kind,
        tokens: reading.tokens,
        names: this.session.names(reading),
        picture,
        marked,
        pinned,
      });
      figure.legend.show(scaleOf(kind, matrix.range, theme()));
    } catch (error) {
      figure.note.textContent = messageOf(error);
    }
  }

  /**
   * A place for a matrix, with its name and its colours.
   *
   * @param {Kind} kind
   */
  figure(kind) {
    const matrix = new Matrix({
      viewport: this.viewport,
      hover: (i, j) => this.hover(i, j),
      label: `${kind} matrix of the head`,
      pin: (i) => {
        const position = this.main?.positions[i] ?? null;
        this.session.state.set({ token: position === this.session.state.token ? null : position });
      },
    });
    const [note, legend] = [h("p", { class: "note", role: "status" }), new Legend()];
    const caption = h(
      "figcaption",
      {},
      h("b", {}, READINGS[kind][0]),
      h("span", { class: "hint" }, READINGS[kind][1]),
      legend.element,
    );
    return {
      matrix,
      note,
      legend,
      element: h("figure", { "data-kind": kind }, caption, note, matrix.element),
    };
  }

  drawToggles() {
    const [main, ...beside] = this.kinds();
    this.toggles.replaceChildren(
      ...KINDS.filter((kind) => kind !== main).map((kind) => {
        const [name, definition] = READINGS[kind];
        const chosen = beside.includes(kind);
        return h(
          "button",
          {
            type: "button",
            title: definition,
            "aria-pressed": String(chosen),
            "data-kind": kind,
            onclick: () => {
              const next = chosen ? beside.filter((other) => other !== kind) : [...beside, kind];
              this.session.state.set({ beside: next.join(",") });
            },
          },
          name,
        );
      }),
    );
  }

  /**
   * @param {number} [i]
   * @param {number} [j]
   */
  hover(i, j) {
    for (const { matrix } of this.shown.values())
      matrix.drawOver(i === undefined || j === undefined ? null : [i, j]);
    this.panel.read(i, j);
  }

  /** @param {number} factor */
  zoom(factor) {
    this.viewport.zoom(factor, 0.5, 0.5);
  }
}

/**
 * The row of a token: its own, or that of the word it is a piece of; null where it has none.
 *
 * @param {Int32Array} positions
 * @param {number | null} token
 */
export function rowAt(positions, token) {
  const row = token === null ? -1 : positions.findLastIndex((position) => position <= token);
  return row < 0 ? null : row;
}
//# sourceURL=headscope/head.js
