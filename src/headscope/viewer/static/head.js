// One head: its matrix with tokens on both sides, other readings beside it, and its high pairs.

import { cssColour } from "headscope/colours.js";
import { h, number } from "headscope/dom.js";
import { Matrix, Viewport } from "headscope/matrix.js";
import { Panel } from "headscope/panel.js";
import { READINGS } from "headscope/words.js";

export class Head {
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
    this.marks = h(
      "label",
      {},
      h("input", { type: "checkbox", checked: true, onchange: () => this.update() }),
      " above the diagonal only high pairs stand out",
    );
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
          this.marks,
          h("span", { class: "hint" }, "Wheel zooms, drag moves, double click shows all."),
        ),
        this.board,
      ),
      this.panel.element,
    );
    this.shown = new Map(); // kind → its figure
  }

  kinds() {
    const { reading, beside } = this.session.state.values;
    const wanted = beside.split(",").filter((kind) => kind in READINGS && kind !== reading);
    return [reading, ...wanted];
  }

  async update() {
    const { session } = this;
    const { state, reading } = session;
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
      if (!this.shown.has(kind)) this.shown.set(kind, this.figure(kind));
      this.board.append(this.shown.get(kind).element);
    }
    const [main, found] = await Promise.all([
      session.matrix(reading, layer, head, kinds[0]),
      session.pairs(reading, layer, head),
    ]);
    if (state.address() !== asked || reading !== session.reading) return;
    [this.main, this.found] = [main, found];
    this.panel.show(main, found);
    const marked = this.marks.firstChild.checked;
    await Promise.all(kinds.map((kind) => this.fill(kind, layer, head, asked, marked && kind === kinds[0])));
  }

  async fill(kind, layer, head, asked, marked) {
    const { state, reading } = this.session;
    const figure = this.shown.get(kind);
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
      const { scale } = figure.matrix;
      const stops = Array.from({ length: 9 }, (_, k) =>
        cssColour(scale, scale.from + ((scale.to - scale.from) * k) / 8),
      );
      figure.bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
      figure.ends[0].textContent = number(scale.from);
      figure.ends[1].textContent = number(scale.to);
    } catch (error) {
      figure.note.textContent = error.message;
    }
  }

  figure(kind) {
    const matrix = new Matrix({
      viewport: this.viewport,
      hover: (i, j) => this.hover(i, j),
      label: `${kind} matrix of the head`,
      pin: (i) =>
        this.session.state.set({
          token: this.main.positions[i] === this.session.state.token ? null : this.main.positions[i],
        }),
    });
    const [note, bar] = [h("p", { class: "note", role: "status" }), h("i", { class: "bar" })];
    const ends = [h("span"), h("span")];
    const caption = h(
      "figcaption",
      {},
      h("b", {}, READINGS[kind][0]),
      h("span", { class: "hint" }, READINGS[kind][1]),
      h("span", { class: "scale", title: "1st to 99th percentile of the pairs" }, ends[0], bar, ends[1]),
    );
    return {
      matrix,
      note,
      bar,
      ends,
      element: h("figure", { "data-kind": kind }, caption, note, matrix.element),
    };
  }

  drawToggles() {
    const [main, ...beside] = this.kinds();
    this.toggles.replaceChildren(
      ...Object.entries(READINGS)
        .filter(([kind]) => kind !== main)
        .map(([kind, [name, definition]]) =>
          h(
            "button",
            {
              type: "button",
              title: definition,
              "aria-pressed": String(beside.includes(kind)),
              "data-kind": kind,
              onclick: () => {
                const next = beside.includes(kind)
                  ? beside.filter((other) => other !== kind)
                  : [...beside, kind];
                this.session.state.set({ beside: next.join(",") });
              },
            },
            name,
          ),
        ),
    );
  }

  hover(i, j) {
    const cross = i === undefined ? null : [i, j];
    for (const { matrix } of this.shown.values()) if (matrix.values) matrix.drawOver(cross);
    this.panel.read(i, j);
  }

  zoom(factor) {
    this.viewport.zoom(factor, 0.5, 0.5);
  }
}

/** The row of a token: its own, or that of the word it is a piece of; null where it has none. */
export function rowAt(positions, token) {
  const row = token === null ? -1 : positions.findLastIndex((position) => position <= token);
  return row < 0 ? null : row;
}
//# sourceURL=headscope/head.js
