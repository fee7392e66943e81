// Two heads side by side, of one text or of two: the same cross in both, and how far they agree.

import { labelsOf } from "headscope/card.js";
import { scaleOf } from "headscope/colours.js";
import { h, percent } from "headscope/dom.js";
import { Legend } from "headscope/legend.js";
import { Matrix } from "headscope/matrix.js";
import { headPicker } from "headscope/panel.js";
import { theme } from "headscope/theme.js";
import { nameToken, summary } from "headscope/words.js";
import { Viewport } from "headscope/viewport.js";

/** @import { Place, Session } from "headscope/session.js" */
/** @import { Matrix as Numbers, Opened, Pairs } from "headscope/types.js" */

/**
 * What is on one side.
 *
 * @typedef {object} Looked
 * @property {Opened} reading
 * @property {Place} place
 * @property {Numbers} data
 * @property {Pairs} found
 */
/** @typedef {ReturnType<Compare["side"]>} Side */

export class Compare {
  alike = true; // whether both heads are of one text

  /**
   * @param {Session} session
   * @param {(place: 0 | 1) => void} entry asks for another text
   */
  constructor(session, entry) {
    this.session = session;
    const viewport = new Viewport();
    this.agreement = h("p", { class: "agreement", role: "status" });
    this.sides = [0, 1].map((side) => this.side(side, viewport));
    this.element = h(
      "div",
      { class: "compare" },
      h(
        "div",
        { class: "row" },
        this.agreement,
        session.source.canRead
          ? h("button", { type: "button", onclick: () => entry(1) }, "Other text or model on the right …")
          : null,
      ),
      h(
        "div",
        { class: "board", "data-count": "2" },
        this.sides.map(({ element }) => element),
      ),
    );
  }

  /**
   * A place for a head.
   *
   * @param {number} side
   * @param {Viewport} viewport
   */
  side(side, viewport) {
    const { session } = this;
    const picker =
      side === 0
        ? headPicker(
            () => session.current.model,
            () => [session.state.layer, session.state.head],
            (layer, head) => session.state.set({ layer, head }),
          )
        : headPicker(
            () => session.second.model,
            () => session.other,
            (layer, head) => session.state.set({ other: `${layer}-${head}` }),
          );
    const own = new Viewport(); // two texts have no cells in common
    const legend = new Legend();
    const matrix = new Matrix({
      viewport: side === 0 ? viewport : own,
      hover: (i, j) => this.hover(side, i, j),
      label: `Similarity matrix, side ${side + 1}`,
    });
    const [readout, facts, source] = [
      h("p", { class: "readout" }),
      h("table", { class: "facts" }),
      h("span", { class: "hint" }),
    ];
    return {
      looked: /** @type {Looked | null} */ (null),
      picker,
      matrix,
      legend,
      readout,
      facts,
      source,
      element: h(
        "figure",
        {},
        h("figcaption", {}, picker.element, legend.element, source),
        matrix.element,
        readout,
        facts,
      ),
    };
  }

  async update() {
    const { session } = this;
    const { state } = session;
    const asked = state.address();
    const { current: first, second } = session;
    const kind = state.values.reading;
    /** @type {[Opened, Place][]} */
    const chosen = [
      [first, [state.layer, state.head]],
      [second, session.other],
    ];
    const looked = await Promise.all(
      chosen.map(async ([reading, place]) => {
        const [data, found] = await Promise.all([
          session.matrix(reading, ...place, kind),
          session.pairs(reading, ...place),
        ]);
        return { reading, place, data, found };
      }),
    );
    if (state.address() !== asked) return;
    this.alike = first === second;
    const pictures = await Promise.all(
      looked.map(({ reading, place, data }) => session.picture(reading, ...place, kind, data, true)),
    );
    if (state.address() !== asked) return;
    this.sides.forEach((side, k) => this.fill(side, looked[k], pictures[k]));
    if (!this.alike) {
      this.agreement.textContent = "Two readings: each on its own text and scale.";
      return;
    }
    const { both, either } = await session.agreement(first, looked[0].place, looked[1].place);
    if (state.address() !== asked) return;
    this.agreement.textContent = `${both.toLocaleString("en")} pairs are high in both heads: ${percent(either ? both / either : 0)} of those high in either.`;
  }

  /**
   * @param {Side} side
   * @param {Looked} looked
   * @param {ImageBitmap} picture
   */
  fill(side, looked, picture) {
    const { reading, place, data: matrix, found } = looked;
    side.looked = looked;
    side.picker.update();
    const card = reading === this.session.reading ? this.session.card(...place) : null;
    const rows = this.session.state.values.unit === "word" ? "words" : "tokens";
    side.source.textContent = `${card ? `${labelsOf(card)} · ` : ""}${reading.model.name}, ${matrix.size} ${rows}`;
    side.legend.show(scaleOf(this.session.state.values.reading, matrix.range, theme()));
    side.matrix.show(matrix, {
      kind: this.session.state.values.reading,
      tokens: reading.tokens,
      names: this.session.names(reading),
      picture,
      marked: true,
    });
    side.facts.replaceChildren(
      h("tr", {}, h("td"), h("th", { scope: "col" }, "high pairs"), h("th", { scope: "col" }, "all pairs")),
      ...summary(found, this.session.current.header.place).map(([name, high, all]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, high), h("td", {}, all)),
      ),
    );
  }

  /**
   * @param {number} side
   * @param {number} [i]
   * @param {number} [j]
   */
  hover(side, i, j) {
    this.sides.forEach((each, k) => {
      if (!each.looked || (k !== side && !this.alike)) return;
      const none = i === undefined || j === undefined;
      each.matrix.drawOver(none ? null : [i, j]);
      const { values, size, positions } = each.looked.data;
      const { tokens } = each.looked.reading;
      const { unit } = this.session.state.values;
      each.readout.textContent = none
        ? ""
        : `${nameToken(tokens, positions[i], unit)} and ${nameToken(tokens, positions[j], unit)}: ${Number(values[i * size + j].toPrecision(4))}`;
    });
  }
}
//# sourceURL=headscope/compare.js
