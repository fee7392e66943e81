// Every head of the model at once: a grid of layers × heads, and a card of the chosen head.

import { h, choice } from "headscope/dom.js";
import { Matrix } from "headscope/matrix.js";
import { parseRule, RULES } from "headscope/rules.js";
import { MEASURES, READINGS } from "headscope/words.js";

export const BLOCKS = 64; // cells across a thumbnail; a longer text is averaged over blocks

export class Atlas {
  constructor(session) {
    this.session = session;
    const { state } = session;
    this.order = h(
      "select",
      { "aria-label": "Order of the heads", onchange: () => state.set({ order: this.order.value }) },
      h("option", { value: "layer" }, "layer and head"),
      Object.entries(MEASURES).map(([name, [title]]) => h("option", { value: name }, title)),
    );
    this.least = h("input", {
      type: "number",
      class: "least",
      step: "any",
      placeholder: "at least",
      "aria-label": "Leave out heads whose measure is lower",
      title: "Leave out heads whose measure is lower; 0.5 is 50 %",
      onchange: () => state.set({ least: this.least.value }),
    });
    this.scales = choice(
      "Colours",
      [
        ["head", "per head"],
        ["shared", "shared"],
      ],
      state.values.scale,
      (scale) => state.set({ scale }),
    );
    this.about = h("p", { class: "hint" });
    this.grid = h("div", { class: "grid", role: "group", "aria-label": "Heads, a row for each layer" });
    this.matrix = new Matrix({ labelled: false, label: "Similarity matrix of the chosen head" });
    this.name = h("h2");
    this.facts = h("table", { class: "facts" });
    this.card = h(
      "aside",
      { class: "card", "aria-label": "The chosen head" },
      this.name,
      this.matrix.element,
      this.facts,
      h(
        "button",
        { type: "button", class: "main", onclick: () => state.set({ view: "head" }) },
        "Look into this head",
      ),
    );
    this.element = h(
      "div",
      { class: "atlas" },
      h(
        "div",
        { class: "left" },
        h(
          "div",
          { class: "row" },
          h("label", {}, "Order ", this.order),
          this.least,
          h("span", { class: "label" }, "Colours ", this.scales),
          this.about,
        ),
        this.grid,
      ),
      this.card,
    );
  }

  async update(changed = null) {
    const { state, reading } = this.session;
    const touches = (...names) => changed === null || names.some((name) => changed.has(name));
    this.order.value = state.values.order;
    this.least.value = state.values.least;
    this.least.hidden = state.values.order === "layer"; // it is about a measure
    this.scales.choose(state.values.scale);
    if (touches("reading", "special", "rule")) this.measure();
    if (touches("reading", "special")) {
      const thumbnails = await this.session.thumbnails(BLOCKS);
      if (reading !== this.session.reading) return;
      this.thumbnails = thumbnails;
    }
    if (touches("reading", "special", "scale", "order", "least")) await this.lay();
    await this.choose();
  }

  /** Buttons with a canvas each, in the order chosen. */
  async lay() {
    const { layers, heads } = this.session.reading.model;
    const { order, least, scale, reading: kind, special } = this.session.state.values;
    let places = Array.from({ length: layers * heads }, (_, at) => at);
    if (order !== "layer") {
      places.sort((a, b) => this.value(b, order) - this.value(a, order) || a - b);
      if (least !== "") places = places.filter((at) => this.value(at, order) >= Number(least));
    }
    this.buttons = new Map();
    this.grid.style.setProperty("--columns", heads);
    this.grid.classList.toggle("sorted", order !== "layer");
    const corner = order === "layer" ? [h("span")] : [];
    const columns =
      order === "layer"
        ? Array.from({ length: heads }, (_, k) =>
            h("span", { class: "axis", "aria-hidden": "true" }, String(k + 1)),
          )
        : [];
    const cells = places.flatMap((at) => {
      const first = order === "layer" && at % heads === 0;
      return [
        first ? h("span", { class: "axis row-name", "aria-hidden": "true" }, `L${at / heads + 1}`) : null,
        this.button(at, heads),
      ];
    });
    const none = places.length ? [] : [h("p", { class: "hint none" }, "No head reaches this.")];
    this.grid.replaceChildren(...corner, ...columns, ...cells.filter(Boolean), ...none);
    const blocks = this.thumbnails?.blocks ?? 1;
    const tokens = this.session.reading.tokens.special.filter((is) => special === "kept" || !is).length;
    const across = Math.round(tokens / blocks);
    const cell = across > 1 ? `the mean of about ${across} × ${across} pairs` : "one pair";
    const range = scale === "head" ? "each head" : "all heads";
    this.about.textContent = `Each square is a head's matrix ${READINGS[kind][2]}. A pixel is ${cell}; colours run from the 1st to the 99th percentile of ${range}.`;
    if (this.thumbnails) await this.colour();
  }

  button(at, heads) {
    const [layer, head] = [Math.floor(at / heads) + 1, (at % heads) + 1];
    const name = `Layer ${layer}, head ${head}`;
    const button = h(
      "button",
      {
        type: "button",
        class: "head",
        tabindex: "-1",
        "data-layer": layer,
        "data-head": head,
        title: name,
        "aria-label": name,
        onclick: () => this.session.state.set({ layer, head }),
        ondblclick: () => this.session.state.set({ view: "head", layer, head }),
      },
      h("canvas"),
      this.session.state.values.order === "layer" ? null : h("small", {}, `${layer}·${head}`),
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

  value(at, measure) {
    return this.measures?.get(at)?.[measure] ?? -Infinity;
  }

  /** Ask for the measures of all heads; the order follows as they arrive. */
  measure() {
    const { reading: kind, special, rule } = this.session.state.values;
    const asked = [this.session.reading.id, kind, special, rule].join();
    if (asked === this.asked) return;
    this.asked = asked;
    const measures = new Map();
    this.measures = measures;
    const { heads, layers } = this.session.reading.model;
    this.session.measures((layer, head, found) => {
      measures.set((layer - 1) * heads + head - 1, found);
      if (this.measures !== measures) return;
      if (layer === this.session.state.layer && head === this.session.state.head) this.describe();
      if (measures.size === layers * heads && this.session.state.values.order !== "layer") {
        this.lay().then(() => this.choose());
      }
    });
  }

  /** Mark the chosen head and show its card. */
  async choose() {
    const { state, reading } = this.session;
    const at = (state.layer - 1) * reading.model.heads + state.head - 1;
    for (const [place, button] of this.buttons ?? []) {
      if (place === at) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.tabIndex = place === at ? 0 : -1;
    }
    this.name.textContent = `Layer ${state.layer}, head ${state.head}`;
    this.describe();
    const [kind, asked] = [state.values.reading, state.address()];
    const matrix = await this.session.matrix(reading, state.layer, state.head, kind);
    const picture = await this.session.picture(reading, state.layer, state.head, kind, matrix, false);
    if (reading !== this.session.reading || state.address() !== asked) return;
    this.matrix.show(matrix, { kind, tokens: reading.tokens, picture });
  }

  describe() {
    const { state, reading } = this.session;
    const found = this.measures?.get((state.layer - 1) * reading.model.heads + state.head - 1);
    const rule = parseRule(state.values.rule);
    this.facts.replaceChildren(
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
  }

  csv() {
    const { heads } = this.session.reading.model;
    const names = Object.keys(MEASURES);
    const rows = [...this.measures.entries()]
      .sort(([a], [b]) => a - b)
      .map(([at, found]) => [
        Math.floor(at / heads) + 1,
        (at % heads) + 1,
        ...names.map((name) => found[name]),
      ]);
    return [["layer", "head", ...names], ...rows];
  }
}
/** One thumbnail of a sheet, on a canvas. */
export function cut(sheet, at, heads, blocks, canvas = document.createElement("canvas")) {
  canvas.width = canvas.height = blocks;
  const [x, y] = [(at % heads) * blocks, Math.floor(at / heads) * blocks];
  canvas.getContext("2d").drawImage(sheet, x, y, blocks, blocks, 0, 0, blocks, blocks);
  return canvas;
}
//# sourceURL=headscope/atlas.js
