// Beside a matrix or a text: which head, what is under the pointer, and its high pairs.

import { cardHead, cardNumbers, examplePairs } from "headscope/card.js";
import { h, messageOf, number, percent, waiting } from "headscope/dom.js";
import { histogram } from "headscope/histogram.js";
import { RULES, STEPS, atStep, parseRule, ruleText, stepOf } from "headscope/rules.js";
import {
  aboutWindows,
  apart,
  distanceUnit,
  nameToken,
  rankOf,
  relation,
  summary,
  tokenMark,
} from "headscope/words.js";
import { WritesView } from "headscope/writes.js";

/** @import { Place, Session } from "headscope/session.js" */
/** @import { Focus, Matrix, Model, Opened, Pairs, Tokens, Unit } from "headscope/types.js" */

/** What is shown: a head's matrix, its pairs, and the tokens they are of. */
/** @typedef {{matrix: Matrix, found: Pairs, tokens: Tokens}} Shown */

export class Panel {
  /** @type {Shown | null} */
  shown = null;
  /** @type {Opened | null} */
  attended = null; // of which it says where attention goes
  /** @type {import("headscope/types.js").Card | null} */
  carded = null;

  /**
   * `point(i, j)` is told which pair of the list the pointer is on.
   *
   * @param {Session} session
   * @param {(i?: number, j?: number) => void} point
   */
  constructor(session, point) {
    this.session = session;
    this.point = point;
    this.title = headPicker(
      () => session.current.model,
      () => [session.state.layer, session.state.head],
      (layer, head) => session.state.set({ layer, head }),
    );
    this.readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
    this.ruleName = h(
      "select",
      { "aria-label": "Rule for high pairs", onchange: () => this.chooseRule() },
      Object.entries(RULES).map(([name, rule]) => h("option", { value: name }, rule.title)),
    );
    this.slider = h("input", {
      type: "range",
      min: "0",
      max: String(STEPS),
      "aria-label": "How many pairs are high",
      oninput: () => this.slide(),
    });
    this.amount = h("output", { class: "amount" });
    this.definition = h("p", { class: "hint" });
    /** @type {HTMLInputElement} */
    this.across = h("input", {
      type: "checkbox",
      onchange: () => session.state.set({ across: this.across.checked ? "kept" : "left_out" }),
    });
    this.windows = h(
      "div",
      { class: "windows" },
      h("label", {}, this.across, " also pairs across windows"),
      h("p", { class: "hint" }),
    );
    this.facts = h("table", { class: "facts" });
    this.card = h("section", { class: "of-study" });
    this.distances = h("div");
    this.ranged = h(
      "section",
      {},
      h("h2", {}, "How far apart"),
      this.distances,
      h(
        "p",
        { class: "hint" },
        h("i", { class: "key bar" }),
        "high pairs ",
        h("i", { class: "key line" }),
        "all pairs: the chance level",
      ),
    );
    this.focus = h("div");
    this.writes = new WritesView(session);
    this.apart = h("span");
    this.list = h("ol", {
      class: "pairs",
      "aria-label": "High pairs, most similar first: similarity, the two tokens, how far apart",
    });
    this.element = h(
      "aside",
      { class: "panel", "aria-label": "The chosen head" },
      this.title.element,
      this.readout,
      this.card,
      h(
        "section",
        {},
        h("h2", {}, "High pairs"),
        h("div", { class: "row" }, this.ruleName, this.amount),
        this.slider,
        this.definition,
        this.windows,
        this.facts,
      ),
      this.ranged,
      h("section", {}, h("h2", {}, "Where its attention goes"), this.focus),
      this.writes.element,
      h(
        "section",
        {},
        h("h2", {}, "Most similar"),
        h(
          "p",
          { class: "pairs-head", "aria-hidden": "true" },
          h("span", { class: "value" }, "C"),
          h("span", { class: "both" }, "the two tokens"),
          this.apart,
        ),
        this.list,
      ),
    );
    this.read();
  }

  chooseRule() {
    const name = this.chosenRule();
    this.session.state.set({ rule: ruleText({ name, number: RULES[name].first }) });
  }

  slide() {
    const name = this.chosenRule();
    this.session.state.set({ rule: ruleText({ name, number: atStep(name, Number(this.slider.value)) }) });
  }

  chosenRule() {
    return parseRule(`${this.ruleName.value}(1)`).name;
  }

  /**
   * Show a head's matrix and pairs.
   *
   * @param {Matrix} matrix
   * @param {Pairs} found
   */
  show(matrix, found) {
    const rule = parseRule(this.session.state.values.rule);
    const shown = { matrix, found, tokens: this.session.current.tokens };
    this.shown = shown;
    this.title.update();
    this.showCard();
    this.ruleName.value = rule.name;
    if (document.activeElement !== this.slider) this.slider.value = String(stepOf(rule));
    this.slider.setAttribute("aria-valuetext", RULES[rule.name].define(rule.number));
    this.amount.value = `${found.high.count.toLocaleString("en")} of ${found.all.count.toLocaleString("en")}`;
    this.definition.textContent = `High are ${RULES[rule.name].define(rule.number)}.`;
    const { header } = this.session.current;
    const { across } = this.session.state.values;
    this.windows.hidden = header.windows < 2;
    this.across.checked = across === "kept";
    this.windows.lastElementChild?.replaceChildren(aboutWindows(header, across));
    this.facts.replaceChildren(
      h("tr", {}, h("td"), h("th", { scope: "col" }, "high pairs"), h("th", { scope: "col" }, "all pairs")),
      ...summary(found, header.place).map(([name, high, all]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, high), h("td", {}, all)),
      ),
    );
    const unit = distanceUnit(header.place);
    this.apart.textContent = `${unit} apart`;
    this.distances.replaceChildren(histogram(found, unit));
    this.ranged.hidden = this.facts.hidden = header.place?.kind === "inputs";
    this.attend();
    this.writes.element.hidden = Boolean(header.place); // a model's words are of texts
    if (!header.place) this.writes.show();
    this.list.replaceChildren(...found.pairs.slice(0, 100).map((pair) => this.row(shown, ...pair)));
    this.read();
  }

  /** What the study says of the head. */
  showCard() {
    const { state, study } = this.session;
    const card = this.session.card(state.layer, state.head);
    this.card.hidden = !card;
    if (!card || !study || card === this.carded) return;
    this.carded = card;
    this.card.replaceChildren(
      ...cardHead(card, study),
      ...cardNumbers(study, study.cards.indexOf(card)),
      h(
        "details",
        { open: true, hidden: card.examples.length === 0 },
        h("summary", {}, "Five of its pairs"),
        examplePairs(card, this.session.texts.wayTo(state.layer, state.head)),
      ),
    );
  }

  async attend() {
    const { current: reading, state } = this.session;
    const [layer, head] = [state.layer, state.head];
    if (!this.focus.firstChild || this.attended !== reading) {
      this.attended = reading;
      this.focus.replaceChildren(waiting("Reading where attention goes"));
    }
    const found = await this.session.focus(reading).then(
      (focus) => focusTable(focus, layer, head),
      (error) => h("p", { class: "hint" }, messageOf(error)),
    );
    if (reading === this.session.reading && layer === state.layer && head === state.head)
      this.focus.replaceChildren(found);
  }

  /**
   * One pair of the list.
   *
   * @param {Shown} shown
   * @param {number} i
   * @param {number} j
   * @param {number} value
   */
  row({ matrix, tokens }, i, j, value) {
    const [a, b] = [matrix.positions[i], matrix.positions[j]];
    const { unit } = this.session.state.values;
    return h(
      "li",
      {
        onpointerenter: () => this.point(i, j),
        onpointerleave: () => this.point(),
        onclick: () => this.session.state.set({ token: a }),
      },
      h("span", { class: "value" }, number(value)),
      h("span", { class: "both" }, tokenMark(tokens, a, unit), " ", tokenMark(tokens, b, unit)),
      h("span", { class: "apart" }, apart(tokens, a, b)),
    );
  }

  /**
   * Say the pair under the pointer; without one, how to find one.
   *
   * @param {number} [i]
   * @param {number} [j]
   */
  read(i, j) {
    if (i === undefined || j === undefined || !this.shown) {
      this.readout.replaceChildren(
        h("span", { class: "hint" }, "Point at a cell or a token to read its pair."),
      );
      return;
    }
    const { matrix, found, tokens } = this.shown;
    const { positions, values, size } = matrix;
    const [a, b, value] = [positions[i], positions[j], values[i * size + j]];
    const line = (/** @type {string} */ text) => h("span", { class: "line" }, text);
    const named = (/** @type {number} */ p) =>
      h("bdi", {}, nameToken(tokens, p, this.session.state.values.unit));
    if (i === j) {
      const what = this.session.current.header.place ? "position" : "token";
      this.readout.replaceChildren(
        h("b", { class: "line" }, named(a)),
        line(`${what} ${a}, in ${found.takingPart[i]} high pairs, C = ${number(value)} with itself`),
        nearest(this.shown, i, this.session.state.values.unit),
      );
      return;
    }
    const rank = rankOf(matrix, value);
    const distance = apart(tokens, Math.min(a, b), Math.max(a, b));
    const unit = distanceUnit(this.session.current.header.place);
    const facts = [distance && `${distance} ${unit} apart`, ...relation(tokens, a, b)]
      .filter(Boolean)
      .join(", ");
    this.readout.replaceChildren(
      h("b", { class: "line" }, named(a), " and ", named(b)),
      line(
        `C = ${number(value)}, rank ${rank.toLocaleString("en")} of ${((size * (size - 1)) / 2).toLocaleString("en")}`,
      ),
      line([`tokens ${a} and ${b}`, facts].filter(Boolean).join(", ")),
    );
  }
}

/**
 * The words most similar to a token.
 *
 * @param {Shown} shown
 * @param {number} i
 * @param {Unit} unit
 */
function nearest({ matrix: { positions, values, size }, tokens }, i, unit) {
  const others = Array.from(positions.keys())
    .filter((k) => k !== i)
    .sort((k, l) => values[i * size + l] - values[i * size + k]);
  const words = others.slice(0, 5).flatMap((k) => [tokenMark(tokens, positions[k], unit), " "]);
  return h("span", { class: "line" }, "most similar: ", words);
}

/**
 * The targets that get most of a head's attention, with what they would get by chance.
 *
 * @param {Focus | null} focus
 * @param {number} layer
 * @param {number} head
 */
function focusTable(focus, layer, head) {
  if (!focus) {
    const none = "This family of models does not show its attention weights.";
    return h("p", { class: "hint" }, none);
  }
  const masses = focus.mass[layer - 1][head - 1];
  const most = focus.targets
    .map((target, k) => ({ target, mass: masses[k], chance: focus.chance[k] }))
    .filter(({ chance }) => chance > 0)
    .sort((a, b) => b.mass - a.mass)
    .slice(0, 4);
  return h(
    "table",
    { class: "facts" },
    h("tr", {}, h("td"), h("th", { scope: "col" }, "share"), h("th", { scope: "col" }, "by chance")),
    most.map(({ target, mass, chance }) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, target),
        h("td", {}, percent(mass)),
        h("td", {}, percent(chance)),
      ),
    ),
  );
}

/**
 * "Layer 3 · head 5" as two menus.
 *
 * @param {() => Model} model
 * @param {() => Place} chosen
 * @param {(layer: number, head: number) => void} choose
 */
export function headPicker(model, chosen, choose) {
  /** @type {(label: string) => HTMLSelectElement} */
  const menu = (label) =>
    h("select", { "aria-label": label, onchange: () => choose(Number(layers.value), Number(heads.value)) });
  const [layers, heads] = [menu("Layer"), menu("Head")];
  /** @type {(select: HTMLSelectElement, name: string, numbers: number[]) => void} */
  const fill = (select, name, numbers) => {
    const said = numbers.map((one) => `${name} ${one}`);
    if ([...select.options].map((option) => option.text).join() === said.join()) return;
    select.replaceChildren(...said.map((text, k) => h("option", { value: String(k + 1) }, text)));
  };
  const update = () => {
    const { layers: rows, numbers, heads: count } = model();
    const counted = (/** @type {number} */ n) => Array.from({ length: n }, (_, k) => k + 1);
    fill(layers, "Layer", numbers.length ? numbers : counted(rows));
    fill(heads, "Head", counted(count));
    [layers.value, heads.value] = chosen().map(String);
  };
  return { element: h("div", { class: "picker" }, layers, heads), update };
}
//# sourceURL=headscope/panel.js
