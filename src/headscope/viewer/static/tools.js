// The atlas' tools: which measure, in which order, which heads, and what the squares show.

import { kindOf } from "headscope/card.js";
import { choice, h } from "headscope/dom.js";

/** @import { Choice, Measure, Study, Values } from "headscope/types.js" */
/** @import { Session } from "headscope/session.js" */

/** @type {Choice<Values["order"]>[]} */
const ORDERS = [
  ["layer", "by layer"],
  ["high", "high first"],
  ["low", "low first"],
  ["map", "map", "heads that do the same near each other"],
];

export class Tools {
  /** @type {Study | null} */
  filled = null;

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    const { state } = session;
    this.measure = h("select", {
      "aria-label": "Measure of the heads",
      onchange: () => state.set({ measure: this.measure.value, least: "", most: "" }),
    });
    /** @type {Choice<Values["by"]>[]} */
    const ways = [
      ["value", "value"],
      ["lift", "× chance", "as a multiple of what chance would give"],
    ];
    this.by = choice("Value or multiple of chance", ways, state.values.by, (by) =>
      state.set({ by, least: "", most: "" }),
    );
    this.least = this.bound("least", "at least", "Leave out heads whose measure is lower");
    this.most = this.bound("most", "at most", "Leave out heads whose measure is higher");
    this.order = choice("Order of the heads", ORDERS, state.values.order, (order) => state.set({ order }));
    this.label = h("select", {
      "aria-label": "Label of the heads",
      onchange: () => state.set({ label: this.label.value }),
    });
    /** @type {Choice<Values["cells"]>[]} */
    const squares = [
      ["label", "labels", "what each head does over the corpus of the study"],
      ["head", "matrix", "each head's matrix, in a range of colours of its own"],
      ["shared", "on one scale", "each head's matrix, in one range of colours for all heads"],
      ["measure", "measure", "the measure as a colour and a number"],
    ];
    this.cells = choice("What the squares show", squares, state.values.cells, (cells) =>
      state.set({ cells }),
    );
    this.element = h(
      "div",
      { class: "tools" },
      h("div", { class: "row" }, h("label", {}, "Measure ", this.measure), this.by, this.least, this.most),
      h("div", { class: "row" }, this.order, this.label, this.cells),
    );
  }

  /**
   * A field for a number that the measure is not below, or not above.
   *
   * @param {"least" | "most"} name
   * @param {string} words
   * @param {string} title
   */
  bound(name, words, title) {
    /** @type {HTMLInputElement} */
    const field = h("input", {
      type: "number",
      class: `bound ${name}`,
      step: "any",
      placeholder: words,
      "aria-label": title,
      title: `${title}; 0.5 is 50 %`,
      onchange: () => this.session.state.set({ [name]: field.value }),
    });
    return field;
  }

  /**
   * Show what is chosen among `all` measures that there are.
   *
   * @param {Map<string, Measure>} all
   * @param {Measure & {name: string, lift: boolean}} chosen
   * @param {Values["cells"]} cells
   * @param {Values["order"]} order
   */
  update(all, chosen, cells, order) {
    const { state, study, reading } = this.session;
    this.fillMeasures(all);
    this.measure.value = chosen.name;
    this.measure.title = chosen.definition;
    this.by.hidden = !chosen.hasChance;
    this.by.choose(chosen.lift ? "lift" : "value");
    [this.least.value, this.most.value] = [state.values.least, state.values.most];
    this.order.choose(order);
    this.order.offer((each) => each !== "map" || Boolean(study?.map));
    this.label.hidden = !study;
    if (study) this.fillLabels(study);
    this.label.value = state.values.label;
    this.cells.hidden = !reading && !study;
    this.cells.choose(cells);
    this.cells.offer((each) => (each === "label" ? Boolean(study) : each === "measure" || Boolean(reading)));
  }

  /** @param {Map<string, Measure>} all */
  fillMeasures(all) {
    if (this.measure.length === all.size) return;
    const groups = Map.groupBy(all, ([, { group }]) => group);
    this.measure.replaceChildren(
      ...Array.from(groups, ([group, measures]) =>
        h(
          "optgroup",
          { label: group },
          measures.map(([name, { title, definition }]) =>
            h("option", { value: name, title: definition }, title),
          ),
        ),
      ),
    );
  }

  /**
   * Kinds of labels, the most frequent first, with the anchors one by one below theirs.
   *
   * @param {Study} study
   */
  fillLabels(study) {
    if (this.filled === study) return;
    this.filled = study;
    const count = (/** @type {string[]} */ labels) =>
      Array.from(
        Map.groupBy(labels, (label) => label),
        ([label, { length }]) => /** @type {const} */ ([label, length]),
      ).sort(([, a], [, b]) => b - a);
    const labels = study.cards.flatMap(({ labels: own }) => own.map(({ name }) => name));
    const options = count(labels.map(kindOf)).flatMap(([kind, number]) => {
      const inside = count(labels.filter((label) => kindOf(label) === kind && label !== kind));
      return [
        h("option", { value: kind }, `${kind} (${number})`),
        ...inside.map(([label, times]) =>
          h("option", { value: label }, `\u2003${label.slice(kind.length + 1)} (${times})`),
        ),
      ];
    });
    this.label.replaceChildren(h("option", { value: "" }, "all labels"), ...options);
  }
}
//# sourceURL=headscope/tools.js
