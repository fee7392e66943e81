// Two heads side by side, of one text or of two: the same cross in both, and how far they agree.

import { h, percent } from "headscope/dom.js";
import { Matrix, Viewport } from "headscope/matrix.js";
import { headPicker } from "headscope/panel.js";
import { nameToken, summary } from "headscope/words.js";

export class Compare {
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

  side(side, viewport) {
    const { session } = this;
    const picker =
      side === 0
        ? headPicker(session, "layer", "head")
        : headPicker(
            session,
            "",
            "",
            () => session.other,
            () => session.second.model,
            (layer, head) => session.state.set({ other: `${layer}-${head}` }),
          );
    const own = new Viewport(); // two texts have no cells in common
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
      picker,
      matrix,
      readout,
      facts,
      source,
      element: h("figure", {}, h("figcaption", {}, picker.element, source), matrix.element, readout, facts),
    };
  }

  async update() {
    const { session } = this;
    const { state } = session;
    const asked = state.address();
    const chosen = [
      [session.reading, state.layer, state.head],
      [session.second, ...session.other],
    ];
    const answers = await Promise.all(
      chosen.map(([reading, layer, head]) =>
        Promise.all([
          session.matrix(reading, layer, head, state.values.reading),
          session.pairs(reading, layer, head),
        ]),
      ),
    );
    if (state.address() !== asked) return;
    this.alike = session.reading === session.second;
    const pictures = await Promise.all(
      chosen.map(([reading, layer, head], k) =>
        session.picture(reading, layer, head, state.values.reading, answers[k][0], true),
      ),
    );
    if (state.address() !== asked) return;
    this.sides.forEach((side, k) => this.fill(side, chosen[k], pictures[k], ...answers[k]));
    if (!this.alike) {
      this.agreement.textContent = "Two readings: each on its own text and scale.";
      return;
    }
    const { both, either } = await session.agreement(session.reading, chosen[0].slice(1), chosen[1].slice(1));
    if (state.address() !== asked) return;
    this.agreement.textContent = `${both.toLocaleString("en")} pairs are high in both heads: ${percent(either ? both / either : 0)} of those high in either.`;
  }

  fill(side, [reading, ...place], picture, matrix, found) {
    side.picker.update();
    const card = reading === this.session.reading ? this.session.card(...place) : null;
    const rows = this.session.state.values.unit === "word" ? "words" : "tokens";
    side.source.textContent = `${card ? `${card.label} · ` : ""}${reading.model.name}, ${matrix.size} ${rows}`;
    Object.assign(side, { data: matrix, found, reading, place });
    side.matrix.show(matrix, {
      kind: this.session.state.values.reading,
      tokens: reading.tokens,
      names: this.session.names(reading),
      picture,
      marked: true,
    });
    side.facts.replaceChildren(
      h("tr", {}, h("td"), h("th", { scope: "col" }, "high pairs"), h("th", { scope: "col" }, "all pairs")),
      ...summary(found).map(([name, high, all]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, high), h("td", {}, all)),
      ),
    );
  }

  hover(side, i, j) {
    this.sides.forEach((each, k) => {
      if (!each.data || (k !== side && !this.alike)) return;
      each.matrix.drawOver(i === undefined ? null : [i, j]);
      const { values, size, positions } = each.data;
      const { tokens } = each.reading;
      const { unit } = this.session.state.values;
      each.readout.textContent =
        i === undefined
          ? ""
          : `${nameToken(tokens, positions[i], unit)} and ${nameToken(tokens, positions[j], unit)}: ${Number(values[i * size + j].toPrecision(4))}`;
    });
  }
}
//# sourceURL=headscope/compare.js
