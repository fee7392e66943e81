// Colours above the tokens of a text, and what they mean: a person's own classes, or on request the
// communities that the chosen head makes.

import { choice, h, number } from "headscope/dom.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Communities, Mark } from "headscope/types.js" */

// Okabe and Ito's colours, which colour-blind people tell apart; labels beyond them are grey.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#7a5195"];
const OTHER = "#8c8c8c";
const EXPLAINED =
  "Tokens that are more alike to this head than the sums of their similarities let expect are in one " +
  "community: the states of least energy of a Potts model. Any matrix has some; a study says whether they " +
  "mean more than chance (headscope communities).";

export class Marks {
  chosen = 0;
  /** @type {HTMLSpanElement[]} */
  spans = [];
  /** @type {Communities | null} */
  communities = null; // of the spans, where they are asked for

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    /** @type {HTMLInputElement} */
    this.asked = h("input", {
      type: "checkbox",
      onchange: () => session.state.set({ communities: this.asked.checked ? "shown" : "" }),
    });
    this.meaning = h("span", { class: "row marks" });
    const label = h("label", { title: EXPLAINED }, this.asked, " communities of this head");
    this.element = h("div", { class: "row marks" }, label, this.meaning);
  }

  /**
   * Colour the spans of a text that is shown anew.
   *
   * @param {HTMLSpanElement[]} spans
   */
  paint(spans) {
    [this.spans, this.communities] = [spans, null];
    this.update();
  }

  /**
   * Colour by communities of the spans, or without any by what a person marked.
   *
   * @param {Communities | null} communities
   */
  show(communities) {
    this.communities = communities;
    this.update();
  }

  /** Colour the spans, and say what the colours mean. */
  update() {
    const { marks } = this.session.current.header;
    this.asked.checked = this.session.state.values.communities === "shown";
    const mark = this.communities ? this.asMark(this.communities) : (marks[this.chosen] ?? marks[0]);
    for (const span of this.spans) {
      const label = mark ? mark.of[Number(span.dataset.position)] : -1;
      span.classList.toggle("marked", label >= 0);
      if (label < 0) continue;
      span.style.setProperty("--mark", colourOf(label));
      span.dataset.mark = mark.labels[label];
    }
    this.meaning.replaceChildren(...(mark ? this.legend(mark) : []));
  }

  /**
   * Communities as a mark: their numbers are the labels, the largest first.
   *
   * @param {Communities} communities
   * @returns {Mark}
   */
  asMark({ states, energy }) {
    const of = this.session.current.tokens.id.map(() => -1);
    this.spans.forEach((span, k) => (of[Number(span.dataset.position)] = states[k]));
    const labels = Array.from({ length: Math.max(-1, ...states) + 1 }, (_, state) => String(state + 1));
    const name = `${labels.length} ${labels.length === 1 ? "community" : "communities"}, energy ${number(energy)}:`;
    return { name, labels, of };
  }

  /** @param {Mark} mark */
  legend(mark) {
    const { marks } = this.session.current.header;
    const counts = mark.labels.map((_, label) => mark.of.filter((own) => own === label).length);
    const shown = mark.labels
      .slice(0, COLOURS.length)
      .map((name, label) => legend(name, label, counts[label]));
    const rest = counts.slice(COLOURS.length).reduce((sum, count) => sum + count, 0);
    if (rest) shown.push(legend("others", COLOURS.length, rest));
    if (this.communities || marks.length < 2) return [h("span", {}, mark.name), ...shown];
    const several = choice(
      "Labels",
      marks.map(({ name }, place) => /** @type {const} */ ([String(place), name])),
      String(this.chosen),
      (place) => {
        this.chosen = Number(place);
        this.update();
      },
    );
    several.choose(String(this.chosen));
    return [several, ...shown];
  }
}

/** @param {number} label */
function colourOf(label) {
  return COLOURS[label] ?? OTHER;
}

/**
 * @param {string} name
 * @param {number} label
 * @param {number} count
 */
function legend(name, label, count) {
  const swatch = h("i", { class: "swatch" });
  swatch.style.backgroundColor = colourOf(label);
  return h("span", { class: "hint" }, swatch, h("bdi", {}, name), ` ${count}`);
}
//# sourceURL=headscope/marks.js
