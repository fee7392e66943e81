// Beside a matrix or a text: which head, what is under the pointer, and its high pairs.

import { cardHead, examplePairs } from "headscope/card.js";
import { h, number, percent, shortened } from "headscope/dom.js";
import { histogram } from "headscope/histogram.js";
import { RULES, STEPS, atStep, parseRule, ruleText, stepOf } from "headscope/rules.js";
import { nameToken, rankOf, relation, summary } from "headscope/words.js";

export class Panel {
  /** `point(i, j)` is told which pair of the list the pointer is on. */
  constructor(session, point) {
    this.session = session;
    this.point = point;
    this.title = headPicker(session, "layer", "head");
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
    this.facts = h("table", { class: "facts" });
    this.card = h("section", { class: "of-study" });
    this.distances = h("div");
    this.focus = h("div");
    this.list = h("ol", { class: "pairs", "aria-label": "High pairs, most similar first" });
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
        this.facts,
      ),
      h(
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
      ),
      h("section", {}, h("h2", {}, "Where its attention goes"), this.focus),
      h("section", {}, h("h2", {}, "Most similar"), this.list),
    );
    this.read();
  }

  chooseRule() {
    const name = this.ruleName.value;
    this.session.state.set({ rule: ruleText({ name, number: RULES[name].first }) });
  }

  slide() {
    const name = this.ruleName.value;
    this.session.state.set({ rule: ruleText({ name, number: atStep(name, Number(this.slider.value)) }) });
  }

  /** Show a head's matrix and pairs. */
  show(matrix, found) {
    const rule = parseRule(this.session.state.values.rule);
    Object.assign(this, { matrix, found, tokens: this.session.reading.tokens });
    this.title.update();
    this.showCard();
    this.ruleName.value = rule.name;
    if (document.activeElement !== this.slider) this.slider.value = String(stepOf(rule));
    this.slider.setAttribute("aria-valuetext", RULES[rule.name].define(rule.number));
    this.amount.value = `${found.high.count.toLocaleString("en")} of ${found.all.count.toLocaleString("en")}`;
    this.definition.textContent = `High are ${RULES[rule.name].define(rule.number)}.`;
    this.facts.replaceChildren(
      h("tr", {}, h("td"), h("th", { scope: "col" }, "high pairs"), h("th", { scope: "col" }, "all pairs")),
      ...summary(found).map(([name, high, all]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, high), h("td", {}, all)),
      ),
    );
    this.distances.replaceChildren(histogram(found));
    this.attend();
    this.list.replaceChildren(...found.pairs.slice(0, 100).map(([i, j, value]) => this.row(i, j, value)));
    this.read();
  }

  /** What the study says of the head. */
  showCard() {
    const { state, study } = this.session;
    const card = this.session.card(state.layer, state.head);
    this.card.hidden = !card;
    if (!card || card === this.carded) return;
    this.carded = card;
    this.card.replaceChildren(
      ...cardHead(card, study),
      h("details", { open: true }, h("summary", {}, "Five of its pairs"), examplePairs(card)),
    );
  }

  async attend() {
    const { reading, state } = this.session;
    const [layer, head] = [state.layer, state.head];
    const focus = await this.session.focus(reading).catch((error) => ({ error }));
    if (reading === this.session.reading && layer === state.layer && head === state.head)
      this.focus.replaceChildren(focusTable(focus, layer, head));
  }

  row(i, j, value) {
    const [a, b] = [this.matrix.positions[i], this.matrix.positions[j]];
    const word = (p) => h("bdi", {}, shortened(this.tokens.word[p], 20));
    return h(
      "li",
      {
        onpointerenter: () => this.point(i, j),
        onpointerleave: () => this.point(),
        onclick: () => this.session.state.set({ token: a }),
      },
      h("span", { class: "value" }, number(value)),
      h("span", { class: "both" }, word(a), " · ", word(b)),
      h("span", { class: "apart" }, String(b - a)),
    );
  }

  /** Say the pair under the pointer; without one, how to find one. */
  read(i, j) {
    if (i === undefined || j === undefined || !this.matrix) {
      this.readout.replaceChildren(
        h("span", { class: "hint" }, "Point at a cell or a token to read its pair."),
      );
      return;
    }
    const { positions, values, size } = this.matrix;
    const [a, b, value] = [positions[i], positions[j], values[i * size + j]];
    const line = (text) => h("span", { class: "line" }, text);
    const both = h("b", { class: "line" }, h("bdi", {}, this.named(a)), " and ", h("bdi", {}, this.named(b)));
    if (i === j) {
      this.readout.replaceChildren(
        h("b", { class: "line" }, h("bdi", {}, this.named(a))),
        line(`token ${a}, in ${this.found.takingPart[i]} high pairs, C = ${number(value)} with itself`),
        this.nearest(i),
      );
      return;
    }
    const rank = rankOf(this.matrix, value);
    const facts = [`${Math.abs(a - b)} tokens apart`, ...relation(this.tokens, a, b)].join(", ");
    this.readout.replaceChildren(
      both,
      line(
        `C = ${number(value)}, rank ${rank.toLocaleString("en")} of ${((size * (size - 1)) / 2).toLocaleString("en")}`,
      ),
      line(`tokens ${a} and ${b}, ${facts}`),
    );
  }

  named(position) {
    return nameToken(this.tokens, position, this.session.state.values.unit);
  }

  /** The words most similar to a token. */
  nearest(i) {
    const { positions, values, size } = this.matrix;
    const others = Array.from(positions.keys())
      .filter((k) => k !== i)
      .sort((k, l) => values[i * size + l] - values[i * size + k]);
    const words = others
      .slice(0, 5)
      .flatMap((k) => [" · ", h("bdi", {}, shortened(this.tokens.word[positions[k]], 16))]);
    return h("span", { class: "line" }, "most similar: ", words.slice(1));
  }
}

/** The targets that get most of a head's attention, with what they would get by chance. */
function focusTable(focus, layer, head) {
  if (!focus || focus.error)
    return h(
      "p",
      { class: "hint" },
      focus?.error.message ?? "This family of models does not show its attention weights.",
    );
  const masses = focus.mass[layer - 1][head - 1];
  const most = focus.targets
    .map((target, k) => [target, masses[k], focus.chance[k]])
    .filter(([, , chance]) => chance > 0)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4);
  return h(
    "table",
    { class: "facts" },
    h("tr", {}, h("td"), h("th", { scope: "col" }, "share"), h("th", { scope: "col" }, "by chance")),
    most.map(([target, mass, chance]) =>
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

/** "Layer 3 · head 5" as two menus. */
export function headPicker(
  session,
  layer,
  head,
  chosen = () => [session.state.layer, session.state.head],
  model = () => session.reading.model,
  choose = (l, k) => session.state.set({ [layer]: l, [head]: k }),
) {
  const menu = (label) =>
    h("select", { "aria-label": label, onchange: () => choose(Number(layers.value), Number(heads.value)) });
  const [layers, heads] = [menu("Layer"), menu("Head")];
  const fill = (select, name, count) => {
    if (select.length === count) return;
    select.replaceChildren(
      ...Array.from({ length: count }, (_, k) => h("option", { value: String(k + 1) }, `${name} ${k + 1}`)),
    );
  };
  const update = () => {
    fill(layers, "Layer", model().layers);
    fill(heads, "Head", model().heads);
    [layers.value, heads.value] = chosen().map(String);
  };
  return { element: h("div", { class: "picker" }, layers, heads), update };
}
//# sourceURL=headscope/panel.js
