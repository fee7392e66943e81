// Every head of the model at once: a grid of layers × heads, and what is known of the chosen head.
// With a study the heads bear its labels and measures; without a model these are all there is.

import {
  cardHead,
  cardMeasures,
  cardNumbers,
  examplePairs,
  kindColours,
  kindOf,
  labelsOf,
} from "headscope/card.js";
import { cssColour, isPale, scaleOf } from "headscope/colours.js";
import { h, percent } from "headscope/dom.js";
import { Legend } from "headscope/legend.js";
import { boundaries, contextOf, Matrix } from "headscope/matrix.js";
import { allMeasures, isNumber, OF_TEXT, told } from "headscope/measures.js";
import { parseRule, RULES } from "headscope/rules.js";
import { theme } from "headscope/theme.js";
import { Tools } from "headscope/tools.js";
import { aboutWindows, READINGS } from "headscope/words.js";
import { WritesView } from "headscope/writes.js";

/** @import { Place, Session } from "headscope/session.js" */
/** @import { Card, Changed, HeadMap, HeadMeasures, Measure, Scale, Thumbnails, Values } from "headscope/types.js" */

/** The measure that is looked at: as it is, or as a multiple of chance. */
/** @typedef {Measure & {name: string, lift: boolean, value: (at: number) => number | null}} Chosen */

/** @param {Card} card */
const evidenceOf = (card) => [labelsOf(card), card.labels.map(({ evidence }) => evidence).join("; ")];

export const BLOCKS = 64; // cells across a thumbnail; a longer text is averaged over blocks

export class Atlas {
  /** @type {Map<string, Measure>} */
  all = new Map();
  /** @type {Map<number, HeadMeasures> | null} */
  measures = null; // of the text, as far as they are known
  asked = ""; // what they were asked of
  /** @type {Thumbnails | null} */
  thumbnails = null;
  /** @type {Map<number, HTMLButtonElement>} */
  buttons = new Map();
  /** @type {number[]} */
  places = []; // of the heads, in the order they stand

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    const { state } = session;
    this.tools = new Tools(session);
    this.about = h("p", { class: "hint" });
    this.legend = new Legend();
    this.progress = h("span", { class: "hint", role: "status" });
    this.squares = h("div", { class: "squares" }, this.legend.element, this.progress);
    this.ofHead = new Legend();
    this.grid = h("div", { class: "grid", role: "group", "aria-label": "Heads, a row for each layer" });
    this.matrix = new Matrix({ labelled: false, label: "Similarity matrix of the chosen head" });
    this.name = h("h2");
    this.card = h("div", { class: "of-study" });
    this.facts = h("table", { class: "facts" });
    this.examples = h("div", { class: "of-study" });
    this.numbers = h("details", { hidden: true });
    this.writes = new WritesView(session);
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
      this.ofHead.element,
      this.matrix.element,
      this.examples,
      this.facts,
      this.writes.element,
      this.numbers,
    );
    this.element = h(
      "div",
      { class: "atlas" },
      h("div", { class: "left" }, this.tools.element, this.about, this.squares, this.grid),
      this.aside,
    );
  }

  /** @param {Changed} changed */
  async update(changed = null) {
    const { session } = this;
    const { reading } = session;
    const touches = (/** @type {(keyof Values)[]} */ ...names) =>
      changed === null || names.some((name) => changed.has(name));
    if (reading && touches("reading", "special", "rule", "across", "unit")) this.measure();
    this.all = allMeasures(session.study, reading?.header.measures ?? [], this.measures);
    if (reading && touches("reading", "special", "unit")) {
      const thumbnails = await session.thumbnails(BLOCKS);
      if (reading !== session.reading) return;
      this.thumbnails = thumbnails;
    }
    const laid = touches(
      "reading",
      "special",
      "unit",
      "cells",
      "measure",
      "by",
      "order",
      "label",
      "least",
      "most",
    );
    if (laid) await this.lay();
    await this.choose();
  }

  /**
   * The measure that is looked at; what an address names may not be there.
   *
   * @returns {Chosen}
   */
  get chosen() {
    const { measure, by } = this.session.state.values;
    const [first] = this.all.keys();
    const name = this.all.has(measure) ? measure : first;
    const found = this.all.get(name);
    if (!found) throw new Error("There is no measure to look at.");
    const lift = by === "lift" && found.hasChance;
    const value = (/** @type {number} */ at) => found.of(at)[lift ? "lift" : "value"] ?? null;
    const times = (/** @type {number} */ number) => `${number.toFixed(number < 9.95 ? 1 : 0)} ×`;
    const show = lift ? times : found.show;
    return { ...found, name, lift, value, show };
  }

  /**
   * What the squares show: what was chosen, else the labels where there is a study.
   *
   * @returns {Values["cells"]}
   */
  get cells() {
    const { reading, study, state } = this.session;
    const { cells } = state.values;
    if (cells === "measure" || (reading && cells && cells !== "label")) return cells;
    if (study) return cells && cells !== "label" ? "measure" : "label";
    return reading ? "head" : "measure";
  }

  /**
   * In which order heads stand; on a map only where the study has one.
   *
   * @returns {Values["order"]}
   */
  get order() {
    const { order } = this.session.state.values;
    return order === "map" && !this.session.study?.map ? "layer" : order;
  }

  get coloured() {
    return this.cells === "measure";
  }

  /**
   * Which heads are in, by measure and label.
   *
   * @param {Chosen} chosen
   */
  filter({ value }) {
    const { least, most, label } = this.session.state.values;
    const inside = (/** @type {number | null} */ number) =>
      (least === "" || (number !== null && number >= Number(least))) &&
      (most === "" || (number !== null && number <= Number(most)));
    const cards = this.session.study?.cards;
    const bears = (/** @type {number} */ at) =>
      !label || !cards || cards[at].labels.some(({ name }) => name === label || kindOf(name) === label);
    return (/** @type {number} */ at) => inside(value(at)) && bears(at);
  }

  /** Buttons with a canvas or a colour each, in the order chosen. */
  async lay() {
    const { session } = this;
    const { layers, heads } = session.model;
    const { order } = this;
    const map = order === "map" ? session.study?.map : null;
    const chosen = this.chosen;
    const within = this.filter(chosen);
    let places = Array.from({ length: layers * heads }, (_, at) => at);
    const sorted = order === "high" || order === "low";
    if (sorted) {
      const sign = order === "high" ? 1 : -1;
      const rank = (/** @type {number} */ at) => sign * (chosen.value(at) ?? -sign * Infinity);
      places = places.filter(within).sort((a, b) => rank(b) - rank(a) || a - b);
    }
    this.tools.update(this.all, chosen, this.cells, order);
    this.buttons = new Map();
    this.places = places;
    this.grid.style.setProperty("--columns", String(heads));
    this.grid.style.setProperty("--rows", String(layers));
    this.grid.classList.toggle("sorted", sorted);
    this.grid.classList.toggle("map", Boolean(map));
    const axis = (/** @type {string} */ text, more = "") =>
      h("span", { class: `axis${more}`, "aria-hidden": "true" }, text);
    const numbers = Array.from({ length: heads }, (_, k) => axis(String(k + 1)));
    const columns = sorted || map ? [] : [h("span"), ...numbers];
    const cells = places.flatMap((at) => [
      ...(sorted || map || at % heads ? [] : this.rowName(at / heads + 1)),
      this.button(at, heads, within(at)),
    ]);
    const none = places.length ? [] : [h("p", { class: "hint none" }, "No head is like this.")];
    if (map) this.grid.replaceChildren(plane(map, cells));
    else this.grid.replaceChildren(...columns, ...cells.filter((cell) => cell !== null), ...none);
    const found = Array.from({ length: layers * heads }, (_, at) => at).filter(within).length;
    const count = found < layers * heads ? `${found} of ${layers * heads} heads.` : "";
    const { reading } = session;
    const windows = reading ? aboutWindows(reading.header, session.state.values.across) : "";
    const near = map
      ? `Heads that do the same are near each other; the map shows ${percent(map.shown)} of all differences.`
      : "";
    this.about.textContent = [near, count, this.aboutSquares(chosen), windows].filter(Boolean).join(" ");
    this.drawSeams();
    this.showLegend(chosen);
    if (this.cells === "label") this.nameLabels();
    else if (this.coloured) this.tint(chosen);
    else if (this.thumbnails) await this.colour(this.thumbnails);
  }

  /**
   * The number of a layer, after a gap where the layers before it have no heads.
   *
   * @param {number} row
   */
  rowName(row) {
    const number = this.session.layerNumber(row);
    const before = row > 1 ? this.session.layerNumber(row - 1) : 0;
    const gap = number - before - 1;
    const which = gap > 1 ? `Layers ${before + 1}–${number - 1} have` : `Layer ${number - 1} has`;
    const name = h("span", { class: "axis row-name", "aria-hidden": "true" }, `L${number}`);
    return gap ? [h("span", { class: "axis gap" }, `${which} no heads`), name] : [name];
  }

  /** @param {Chosen} chosen */
  aboutSquares(chosen) {
    if (this.cells === "label")
      return `What each head does over ${this.session.study?.corpus.name}, the strongest label first. Colour: its kind.`;
    return this.coloured ? this.aboutMeasure(chosen) : this.aboutMatrices();
  }

  /** @param {Chosen} chosen */
  aboutMeasure({ title, definition, group, lift }) {
    const over = group === OF_TEXT ? "in this text" : `over ${this.session.study?.corpus.name}`;
    const what = lift ? `${title}, as a multiple of chance` : title;
    return `Colour and number: ${what}${definition ? ` (${definition})` : ""}, ${over}.`;
  }

  aboutMatrices() {
    const { reading: kind } = this.session.state.values;
    const blocks = this.thumbnails?.blocks ?? 1;
    const across = Math.round((this.thumbnails?.tokens ?? 1) / blocks);
    const cell = across > 1 ? `the mean of about ${across} × ${across} pairs` : "one pair";
    const range = this.cells === "head" ? "each head" : "all heads";
    return `Each square is a head's matrix ${READINGS[kind][2]}. A pixel is ${cell}; colours run from the 1st to the 99th percentile of ${range}, special tokens left aside.`;
  }

  /**
   * @param {number} at
   * @param {number} heads
   * @param {boolean} within
   */
  button(at, heads, within) {
    const { session } = this;
    const [layer, head] = [Math.floor(at / heads) + 1, (at % heads) + 1];
    const card = session.study?.cards[at];
    const label = labelsOf(card);
    const number = session.layerNumber(layer);
    const name = `Layer ${number}, head ${head}${label ? `: ${label}` : ""}`;
    const place = this.order === "layer" ? null : h("small", {}, `${number}·${head}`);
    const button = h(
      "button",
      {
        type: "button",
        class: within ? "head" : "head out",
        tabindex: "-1",
        "data-layer": layer,
        "data-head": head,
        title: name + this.closest(at),
        "aria-label": name,
        onclick: () => session.state.set({ layer, head }),
        ondblclick: () => session.state.set({ view: "head", layer, head }),
      },
      this.inside(card),
      place,
    );
    this.buttons.set(at, button);
    return button;
  }

  /**
   * With which head one agrees most, where heads stand on a map.
   *
   * @param {number} at
   */
  closest(at) {
    const map = this.order === "map" ? this.session.study?.map : null;
    const agreement = map?.agreement[at];
    if (!map || !isNumber(agreement)) return "";
    const [layer, head] = map.closest[at];
    return `; agrees most with ${this.session.layerNumber(layer)}·${head} (${agreement.toFixed(2)})`;
  }

  /** @param {Card | undefined} card */
  inside(card) {
    const labels = (card?.labels ?? []).map(({ name }) => h("i", {}, h("bdi", {}, name)));
    if (this.cells === "label") return labels;
    return this.coloured ? [h("b"), labels[0] ?? ""] : h("canvas");
  }

  /** A colour for each kind of label. */
  nameLabels() {
    const { study } = this.session;
    if (!study) return;
    const colours = kindColours(study);
    for (const [at, button] of this.buttons) {
      button.style.background = colours.get(kindOf(study.cards[at].labels[0].name)) ?? "";
      button.style.color = "#111";
    }
  }

  /**
   * Put the thumbnails on their buttons, cut from one sheet.
   *
   * @param {Thumbnails} thumbnails
   */
  async colour(thumbnails) {
    const { buttons } = this;
    const { heads } = this.session.current.model;
    const sheet = await this.session.sheet(thumbnails);
    if (this.buttons === buttons) {
      // else laid anew meanwhile
      for (const [at, button] of buttons) {
        const canvas = button.querySelector("canvas");
        if (canvas) cut(sheet, at, heads, thumbnails.blocks, canvas);
      }
    }
    sheet.close();
  }

  /**
   * The colours of the squares.
   *
   * @param {Chosen} chosen
   */
  showLegend(chosen) {
    const { thumbnails } = this;
    this.legend.element.hidden = this.cells === "label" || (!this.coloured && !thumbnails);
    if (this.coloured) {
      const { scale, ends } = this.measureScale(chosen);
      this.legend.show(scale, ends);
    } else if (thumbnails) {
      const { reading: kind } = this.session.state.values;
      const shared = this.cells === "shared";
      const scale = scaleOf(kind, thumbnails.shared, theme());
      if (shared) this.legend.show(scale);
      else this.legend.show(scale, ["1st percentile of the head", "99th"]);
    }
  }

  /** Where the windows of the text meet, as lines over every thumbnail. */
  drawSeams() {
    const { session } = this;
    const { reading } = session;
    const rows = reading ? session.rows(reading) : [];
    const seams = reading && !this.coloured ? boundaries(rows, reading.tokens.window) : [];
    const at = seams.map((row) => `${(100 * row) / rows.length}%`);
    const lines = ["to right", "to bottom"].flatMap((way) =>
      at.map(
        (place) =>
          `linear-gradient(${way}, transparent calc(${place} - 0.5px), var(--seam) 0, var(--seam) calc(${place} + 0.5px), transparent 0)`,
      ),
    );
    this.grid.style.setProperty("--seams", lines.join(", ") || "none");
  }

  /**
   * The colours of a measure; multiples of chance on a scale of ratios, from 1 both ways.
   *
   * @param {Chosen} chosen
   * @returns {{place: (number: number) => number, scale: Scale, ends: [low: string, high: string]}}
   */
  measureScale({ value, lift, show }, inks = theme()) {
    const { layers, heads } = this.session.model;
    const place = (/** @type {number} */ number) => (lift ? Math.log2(Math.max(number, 2 ** -6)) : number);
    const all = Array.from({ length: layers * heads }, (_, at) => value(at));
    const known = all.filter((number) => number !== null).map(place);
    const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
    const scale = scaleOf(lift ? "centred" : "raw", [low, high], inks);
    const said = (/** @type {number} */ end) => show(rounded(lift ? 2 ** end : end));
    return { place, scale, ends: known.length ? [said(scale.from), said(scale.to)] : ["–", "–"] };
  }

  /** @param {Chosen} chosen */
  tint(chosen) {
    const { place, scale } = this.measureScale(chosen);
    for (const [at, button] of this.buttons) {
      const number = chosen.value(at);
      const said = button.querySelector("b");
      if (said) said.textContent = number === null ? "–" : chosen.show(rounded(number));
      button.style.background = number === null ? "" : cssColour(scale, place(number));
      button.style.color = number === null ? "" : isPale(scale, place(number)) ? "#111" : "#fff";
    }
  }

  /**
   * How many heads are measured; the squares that show it are coloured on the way.
   *
   * @param {number} done
   * @param {number} all
   */
  tellProgress(done, all) {
    this.progress.textContent = done < all ? `Measuring heads: ${done} of ${all} …` : "";
    const ofText = this.all.size > 0 && this.coloured && this.chosen.group === OF_TEXT;
    if (done % 12 === 0 && done < all && ofText && this.cells === "measure") this.tint(this.chosen);
  }

  /** Ask for the measures of all heads; the order follows as they arrive. */
  measure() {
    const { reading: kind, special, rule, across, unit } = this.session.state.values;
    const { id, model } = this.session.current;
    const asked = [id, kind, special, rule, across, unit].join();
    if (asked === this.asked) return;
    this.asked = asked;
    /** @type {Map<number, HeadMeasures>} */
    const measures = new Map();
    this.measures = measures;
    const { heads, layers } = model;
    this.tellProgress(0, layers * heads);
    this.session.measures((layer, head, found) => {
      measures.set((layer - 1) * heads + head - 1, found);
      if (this.measures !== measures) return;
      this.tellProgress(measures.size, layers * heads);
      if (layer === this.session.state.layer && head === this.session.state.head) this.describe();
      const { order, least, most } = this.session.state.values;
      const matters = this.coloured || order !== "layer" || least !== "" || most !== "";
      if (measures.size === layers * heads && matters && this.element.isConnected) {
        this.lay().then(() => this.choose());
      }
    });
  }

  /**
   * The head beside the chosen one where heads stand in another order than their own, else null.
   *
   * @param {number} down
   * @param {number} right
   * @returns {Place | null}
   */
  next(down, right) {
    const { state, model } = this.session;
    if (this.order === "layer" || this.order === "map") return null;
    const now = this.places.indexOf((state.layer - 1) * model.heads + state.head - 1);
    const at = now < 0 ? this.places[0] : this.places[now + down * model.heads + right];
    return at === undefined ? [0, 0] : [Math.floor(at / model.heads) + 1, (at % model.heads) + 1];
  }

  /** Mark the chosen head and show its card. */
  async choose() {
    const { state, reading, model } = this.session;
    const at = (state.layer - 1) * model.heads + state.head - 1;
    for (const [place, button] of this.buttons) {
      if (place === at) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.tabIndex = place === at ? 0 : -1;
    }
    this.name.textContent = `Layer ${this.session.layerNumber(state.layer)}, head ${state.head}`;
    this.describe();
    const { element } = this.writes;
    for (const part of [this.ofHead.element, this.matrix.element, this.facts, element, this.look])
      part.hidden = !reading;
    if (!reading) return;
    element.hidden = Boolean(reading.header.place); // a model's words are of texts
    if (!element.hidden) this.writes.show();
    const [kind, asked] = [state.values.reading, state.address()];
    const matrix = await this.session.matrix(reading, state.layer, state.head, kind);
    const picture = await this.session.picture(reading, state.layer, state.head, kind, matrix, false);
    if (reading !== this.session.reading || state.address() !== asked) return;
    this.ofHead.show(scaleOf(kind, matrix.range, theme()));
    this.matrix.show(matrix, { kind, tokens: reading.tokens, names: [], picture });
  }

  describe() {
    const { state, model, study } = this.session;
    const at = (state.layer - 1) * model.heads + state.head - 1;
    const ofText = [...this.all.values()].filter(({ group }) => group === OF_TEXT);
    const rule = parseRule(state.values.rule);
    this.facts.replaceChildren(
      study ? h("tr", {}, h("th", { scope: "col", colspan: "2" }, "In this text")) : "",
      ...ofText.map(({ title, definition, show, of }) => {
        const { value } = of(at);
        return h(
          "tr",
          { title: definition },
          h("th", { scope: "row" }, title, h("small", {}, definition)),
          h("td", {}, isNumber(value) ? show(value) : "…"),
        );
      }),
    );
    this.facts.title = `High pairs are ${RULES[rule.name].define(rule.number)}.`;
    this.aside.classList.toggle("studied", Boolean(study));
    for (const part of [this.card, this.examples, this.numbers]) part.hidden = !study;
    if (!study) return;
    const [card, chosen] = [study.cards[at], this.chosen];
    const { show } = this.all.get(chosen.name) ?? chosen; // of its value, not of a multiple of chance
    const number = `${chosen.title}: ${told({ show }, chosen.of(at))}`;
    const said = chosen.group === OF_TEXT || chosen.first ? [] : [h("p", {}, number)];
    this.card.replaceChildren(...cardHead(card, study), ...cardNumbers(study, at), ...said);
    this.examples.replaceChildren(
      h("h2", {}, "Five of its pairs"),
      examplePairs(card, this.session.texts.wayTo(state.layer, state.head)),
    );
    this.examples.hidden = card.examples.length === 0; // of pictures and sounds none are kept
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
    const measures = [...this.all];
    const names = measures.map(([name]) => name);
    const rows = Array.from({ length: layers * heads }, (_, at) => [
      this.session.layerNumber(Math.floor(at / heads) + 1),
      (at % heads) + 1,
      ...(study ? evidenceOf(study.cards[at]) : []),
      ...measures.map(([, { of }]) => of(at).value ?? ""),
    ]);
    return [["layer", "head", ...(study ? ["labels", "evidence"] : []), ...names], ...rows];
  }
}

/**
 * Three digits are enough for a square.
 *
 * @param {number} value
 */
export function rounded(value) {
  return Number(value.toPrecision(3));
}

/**
 * One thumbnail of a sheet, on a canvas.
 *
 * @param {ImageBitmap} sheet
 * @param {number} at
 * @param {number} heads
 * @param {number} blocks
 */
export function cut(sheet, at, heads, blocks, canvas = document.createElement("canvas")) {
  canvas.width = canvas.height = blocks;
  const [x, y] = [(at % heads) * blocks, Math.floor(at / heads) * blocks];
  contextOf(canvas).drawImage(sheet, x, y, blocks, blocks, 0, 0, blocks, blocks);
  return canvas;
}

/**
 * The heads on their map, as much of it in a pixel upwards as across.
 *
 * @param {HeadMap} map
 * @param {HTMLElement[]} buttons of all heads, in their order
 */
function plane({ x, y }, buttons) {
  const [left, below] = [Math.min(...x), Math.min(...y)];
  const across = Math.max(...x) - left || 1;
  const up = Math.max(...y) - below || 1;
  for (const [at, button] of buttons.entries()) {
    button.style.left = `${(100 * (x[at] - left)) / across}%`;
    button.style.bottom = `${(100 * (y[at] - below)) / up}%`;
  }
  const element = h("div", { class: "plane" }, buttons);
  element.style.setProperty("--shape", String(Math.min(3, Math.max(1 / 3, across / up))));
  return element;
}
//# sourceURL=headscope/atlas.js
