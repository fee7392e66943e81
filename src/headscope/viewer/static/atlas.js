// Every head of the model at once: a grid of layers × heads, and what is known of the chosen head.
// With a study the heads bear its labels and measures; without a model these are all there is.

import { cardHead, cardMeasures, examplePairs, kindOf } from "headscope/card.js";
import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h } from "headscope/dom.js";
import { Matrix } from "headscope/matrix.js";
import { allMeasures, told } from "headscope/measures.js";
import { parseRule, RULES } from "headscope/rules.js";
import { theme } from "headscope/theme.js";
import { Tools } from "headscope/tools.js";
import { MEASURES, READINGS } from "headscope/words.js";

export const BLOCKS = 64; // cells across a thumbnail; a longer text is averaged over blocks

export class Atlas {
  constructor(session) {
    this.session = session;
    const { state } = session;
    this.tools = new Tools(session);
    this.about = h("p", { class: "hint" });
    this.grid = h("div", { class: "grid", role: "group", "aria-label": "Heads, a row for each layer" });
    this.matrix = new Matrix({ labelled: false, label: "Similarity matrix of the chosen head" });
    this.name = h("h2");
    this.card = h("div", { class: "of-study" });
    this.facts = h("table", { class: "facts" });
    this.examples = h("div", { class: "of-study" });
    this.numbers = h("details", { hidden: true });
    this.look = h(
      "button",
      { type: "button", class: "main", onclick: () => state.set({ view: "head" }) },
      "Look into this head",
    );
    this.aside = h(
      "aside",
      { class: "card", "aria-label": "The chosen head" },
      h("div", { class: "row" }, this.name, h("span", { class: "space" }), this.look),
      this.card,
      this.matrix.element,
      this.examples,
      this.facts,
      this.numbers,
    );
    this.element = h(
      "div",
      { class: "atlas" },
      h("div", { class: "left" }, this.tools.element, this.about, this.grid),
      this.aside,
    );
  }

  async update(changed = null) {
    const { session } = this;
    const { reading } = session;
    const touches = (...names) => changed === null || names.some((name) => changed.has(name));
    if (reading && touches("reading", "special", "rule", "unit")) this.measure();
    this.all = allMeasures(session.study, reading ? this.measures : null);
    if (reading && touches("reading", "special", "unit")) {
      const thumbnails = await session.thumbnails(BLOCKS);
      if (reading !== session.reading) return;
      this.thumbnails = thumbnails;
    }
    const laid = ["reading", "special", "unit", "cells", "measure", "by", "order", "label", "least", "most"];
    if (touches(...laid)) await this.lay();
    await this.choose();
  }

  /** The measure that is looked at; what an address names may not be there. */
  get chosen() {
    const { measure, by } = this.session.state.values;
    const name = this.all.has(measure) ? measure : this.all.keys().next().value;
    const found = this.all.get(name);
    const lift = by === "lift" && found.hasChance === true;
    const value = (at) => found.of(at)[lift ? "lift" : "value"] ?? null;
    const show = lift ? (number) => `${number.toFixed(number < 9.95 ? 1 : 0)} ×` : found.show;
    return { ...found, name, lift, value, show };
  }

  get coloured() {
    return !this.session.reading || this.session.state.values.cells === "measure";
  }

  /** Which heads are in, by measure and label. */
  filter({ value }) {
    const { least, most, label } = this.session.state.values;
    const inside = (number) =>
      (least === "" || (number !== null && number >= Number(least))) &&
      (most === "" || (number !== null && number <= Number(most)));
    const cards = this.session.study?.cards;
    const bears = (at) => !label || !cards || cards[at].label === label || kindOf(cards[at].label) === label;
    return (at) => inside(value(at)) && bears(at);
  }

  /** Buttons with a canvas or a colour each, in the order chosen. */
  async lay() {
    const { session } = this;
    const { layers, heads } = session.model;
    const { order } = session.state.values;
    const chosen = this.chosen;
    const within = this.filter(chosen);
    let places = Array.from({ length: layers * heads }, (_, at) => at);
    const sorted = order !== "layer";
    if (sorted) {
      const sign = order === "high" ? 1 : -1;
      const rank = (at) => (chosen.value(at) === null ? -Infinity : sign * chosen.value(at));
      places = places.filter(within).sort((a, b) => rank(b) - rank(a) || a - b);
    }
    this.tools.update(this.all, chosen);
    this.buttons = new Map();
    this.places = places;
    this.grid.style.setProperty("--columns", heads);
    this.grid.style.setProperty("--rows", layers);
    this.grid.classList.toggle("sorted", sorted);
    const axis = (text, more = "") => h("span", { class: `axis${more}`, "aria-hidden": "true" }, text);
    const numbers = Array.from({ length: heads }, (_, k) => axis(String(k + 1)));
    const columns = sorted ? [] : [h("span"), ...numbers];
    const cells = places.flatMap((at) => [
      !sorted && at % heads === 0 ? axis(`L${at / heads + 1}`, " row-name") : null,
      this.button(at, heads, within(at)),
    ]);
    const none = places.length ? [] : [h("p", { class: "hint none" }, "No head is like this.")];
    this.grid.replaceChildren(...columns, ...cells.filter(Boolean), ...none);
    const found = Array.from({ length: layers * heads }, (_, at) => at).filter(within).length;
    const count = found < layers * heads ? `${found} of ${layers * heads} heads. ` : "";
    this.about.textContent = count + (this.coloured ? this.aboutMeasure(chosen) : this.aboutMatrices());
    if (this.coloured) this.tint(chosen);
    else if (this.thumbnails) await this.colour();
  }

  aboutMeasure({ title, definition, group, lift }) {
    const over = group === "this text" ? "in this text" : `over ${this.session.study.corpus.name}`;
    const what = lift ? `${title}, as a multiple of chance` : title;
    return `Colour and number: ${what}${definition ? ` (${definition})` : ""}, ${over}.`;
  }

  aboutMatrices() {
    const { cells, reading: kind } = this.session.state.values;
    const blocks = this.thumbnails?.blocks ?? 1;
    const across = Math.round((this.thumbnails?.tokens ?? 1) / blocks);
    const cell = across > 1 ? `the mean of about ${across} × ${across} pairs` : "one pair";
    const range = cells === "head" ? "each head" : "all heads";
    return `Each square is a head's matrix ${READINGS[kind][2]}. A pixel is ${cell}; colours run from the 1st to the 99th percentile of ${range}.`;
  }

  button(at, heads, within) {
    const { session } = this;
    const [layer, head] = [Math.floor(at / heads) + 1, (at % heads) + 1];
    const label = session.study?.cards[at].label ?? "";
    const name = `Layer ${layer}, head ${head}${label ? `: ${label}` : ""}`;
    const place = session.state.values.order === "layer" ? null : h("small", {}, `${layer}·${head}`);
    const button = h(
      "button",
      {
        type: "button",
        class: within ? "head" : "head out",
        tabindex: "-1",
        "data-layer": layer,
        "data-head": head,
        title: name,
        "aria-label": name,
        onclick: () => session.state.set({ layer, head }),
        ondblclick: () => session.state.set({ view: "head", layer, head }),
      },
      this.coloured ? [h("b"), h("i", {}, label)] : h("canvas"),
      place,
    );
    this.buttons.set(at, button);
    return button;
  }

  /** Put the thumbnails on their buttons, cut from one sheet. */
  async colour() {
    const { buttons, thumbnails } = this;
    const { heads } = this.session.reading.model;
    const sheet = await this.session.sheet(thumbnails);
    if (this.buttons === buttons) {
      // else laid anew meanwhile
      for (const [at, { firstChild: canvas }] of buttons) cut(sheet, at, heads, thumbnails.blocks, canvas);
    }
    sheet.close();
  }

  /** The colours of a measure; multiples of chance on a scale of ratios, from 1 both ways. */
  measureScale({ value, lift }, inks = theme()) {
    const { layers, heads } = this.session.model;
    const place = (number) => (lift ? Math.log2(Math.max(number, 2 ** -6)) : number);
    const all = Array.from({ length: layers * heads }, (_, at) => value(at));
    const known = all.filter((number) => number !== null).map(place);
    const range = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
    return { place, scale: scaleOf(lift ? "centred" : "raw", range, inks) };
  }

  tint(chosen) {
    const { place, scale } = this.measureScale(chosen);
    for (const [at, button] of this.buttons) {
      const number = chosen.value(at);
      button.firstChild.textContent = number === null ? "–" : chosen.show(rounded(number));
      button.style.background = number === null ? "" : cssColour(scale, place(number));
      button.style.color = number === null ? "" : isPale(scale, place(number)) ? "#111" : "#fff";
    }
  }

  /** Ask for the measures of all heads; the order follows as they arrive. */
  measure() {
    const { reading: kind, special, rule, unit } = this.session.state.values;
    const asked = [this.session.reading.id, kind, special, rule, unit].join();
    if (asked === this.asked) return;
    this.asked = asked;
    const measures = new Map();
    this.measures = measures;
    const { heads, layers } = this.session.reading.model;
    this.session.measures((layer, head, found) => {
      measures.set((layer - 1) * heads + head - 1, found);
      if (this.measures !== measures) return;
      if (layer === this.session.state.layer && head === this.session.state.head) this.describe();
      const { order, least, most } = this.session.state.values;
      const matters = this.coloured || order !== "layer" || least !== "" || most !== "";
      if (measures.size === layers * heads && matters && this.element.isConnected) {
        this.lay().then(() => this.choose());
      }
    });
  }

  /** The head beside the chosen one where heads stand in another order than their own, else null. */
  next(down, right) {
    const { state, model } = this.session;
    if (state.values.order === "layer") return null;
    const now = this.places.indexOf((state.layer - 1) * model.heads + state.head - 1);
    const at = now < 0 ? this.places[0] : this.places[now + down * model.heads + right];
    return at === undefined ? [0, 0] : [Math.floor(at / model.heads) + 1, (at % model.heads) + 1];
  }

  /** Mark the chosen head and show its card. */
  async choose() {
    const { state, reading, model } = this.session;
    const at = (state.layer - 1) * model.heads + state.head - 1;
    for (const [place, button] of this.buttons ?? []) {
      if (place === at) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.tabIndex = place === at ? 0 : -1;
    }
    this.name.textContent = `Layer ${state.layer}, head ${state.head}`;
    this.describe();
    for (const part of [this.matrix.element, this.facts, this.look]) part.hidden = !reading;
    if (!reading) return;
    const [kind, asked] = [state.values.reading, state.address()];
    const matrix = await this.session.matrix(reading, state.layer, state.head, kind);
    const picture = await this.session.picture(reading, state.layer, state.head, kind, matrix, false);
    if (reading !== this.session.reading || state.address() !== asked) return;
    this.matrix.show(matrix, { kind, tokens: reading.tokens, picture });
  }

  describe() {
    const { state, model, study } = this.session;
    const at = (state.layer - 1) * model.heads + state.head - 1;
    const found = this.measures?.get(at);
    const rule = parseRule(state.values.rule);
    this.facts.replaceChildren(
      study ? h("tr", {}, h("th", { scope: "col", colspan: "2" }, "In this text")) : "",
      ...Object.entries(MEASURES).map(([name, [title, definition, show]]) =>
        h(
          "tr",
          { title: definition },
          h("th", { scope: "row" }, title, h("small", {}, definition)),
          h("td", {}, found ? show(found[name]) : "…"),
        ),
      ),
    );
    this.facts.title = `High pairs are ${RULES[rule.name].define(rule.number)}.`;
    this.aside.classList.toggle("studied", Boolean(study));
    for (const part of [this.card, this.examples, this.numbers]) part.hidden = !study;
    if (!study) return;
    const [card, chosen] = [study.cards[at], this.chosen];
    const number = `${chosen.title}: ${told(this.all.get(chosen.name), chosen.of(at))}`;
    const said = chosen.name in MEASURES || chosen.name === "study.strength" ? [] : [h("p", {}, number)];
    this.card.replaceChildren(...cardHead(card, study), ...said);
    this.examples.replaceChildren(h("h2", {}, "Five of its pairs"), examplePairs(card));
    this.numbers.open ||= Boolean(study.missing);
    this.numbers.replaceChildren(
      h("summary", {}, `All its measures over ${study.corpus.name}`),
      cardMeasures(study, at),
    );
  }

  /** Every head with what is known of it. */
  csv() {
    const { layers, heads } = this.session.model;
    const { study } = this.session;
    const names = [...this.all.keys()];
    const rows = Array.from({ length: layers * heads }, (_, at) => [
      Math.floor(at / heads) + 1,
      (at % heads) + 1,
      ...(study ? [study.cards[at].label, study.cards[at].evidence] : []),
      ...names.map((name) => this.all.get(name).of(at).value ?? ""),
    ]);
    return [["layer", "head", ...(study ? ["label", "evidence"] : []), ...names], ...rows];
  }
}

/** Three digits are enough for a square. */
export function rounded(value) {
  return Number(value.toPrecision(3));
}

/** One thumbnail of a sheet, on a canvas. */
export function cut(sheet, at, heads, blocks, canvas = document.createElement("canvas")) {
  canvas.width = canvas.height = blocks;
  const [x, y] = [(at % heads) * blocks, Math.floor(at / heads) * blocks];
  canvas.getContext("2d").drawImage(sheet, x, y, blocks, blocks, 0, 0, blocks, blocks);
  return canvas;
}
//# sourceURL=headscope/atlas.js
