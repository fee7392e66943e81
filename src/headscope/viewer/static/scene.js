// A picture, or a sound, as its model reads it: point at a patch or a frame, and what the head brings
// together with it stays lit, the rest goes dark.

import { h, s } from "headscope/dom.js";
import { rowAt } from "headscope/head.js";
import { Panel } from "headscope/panel.js";
import { partners } from "headscope/reader.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Changed, Matrix, Pairs, Place, Tokens } from "headscope/types.js" */

const [DARK, DIM] = [0.8, 0.45]; // how dark what is least similar is, and what is in no high pair
const FAINT = 0.5; // how faint at most what is written beside the picture, so that it can be read

/** @typedef {[x: number, y: number, width: number, height: number]} Box */

export class Scene {
  /** @type {{matrix: Matrix, found: Pairs} | null} */
  shown = null;
  /** @type {Element[]} */
  cells = []; // one for each row of the matrix
  /** @type {number | undefined} */
  held; // the position held on to

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.panel = new Panel(session, (i, j) => this.hover(i, j));
    this.about = h("p", { class: "hint" });
    this.plate = h("div", { class: "plate" });
    this.beside = h("p", { class: "beside" });
    this.element = h(
      "div",
      { class: "split" },
      h(
        "div",
        { class: "left scene" },
        h("div", { class: "row" }, this.about),
        this.beside,
        h("div", { class: "stand" }, this.plate),
      ),
      this.panel.element,
    );
    for (const part of [this.plate, this.beside]) {
      part.addEventListener("pointerover", (event) => this.hover(indexOf(event.target)));
      part.addEventListener("pointerleave", () => this.hover());
      part.addEventListener("click", (event) => this.pin(indexOf(event.target)));
    }
  }

  /** @param {number | undefined} index */
  pin(index) {
    if (!this.shown || index === undefined) return;
    const position = this.shown.matrix.positions[index];
    this.session.state.set({ token: position === this.session.state.token ? null : position });
  }

  /** @param {Changed} changed */
  async update(changed = null) {
    const { session } = this;
    const { state, current: reading } = session;
    const asked = state.address();
    const [matrix, found] = await Promise.all([
      session.matrix(reading, state.layer, state.head, state.values.reading),
      session.pairs(reading, state.layer, state.head),
    ]);
    if (state.address() !== asked || reading !== session.reading) return;
    if (changed === null || changed.has("special") || this.cells.length !== matrix.size) this.draw(matrix);
    this.shown = { matrix, found };
    this.panel.show(matrix, found);
    this.held = rowAt(matrix.positions, state.token) ?? undefined;
    this.hover();
  }

  /**
   * The picture with its grid; beside it what stands nowhere on it.
   *
   * @param {Matrix} matrix
   */
  draw({ positions }) {
    const { tokens, header } = this.session.current;
    const { place } = header;
    if (!place) return;
    const grid = s("svg", {
      class: "patches",
      viewBox: "0 0 1 1",
      preserveAspectRatio: "none",
      role: "group",
      "aria-label": place.kind === "image" ? "The patches of the picture" : "The frames of the sound",
    });
    this.beside.replaceChildren();
    this.cells = Array.from(positions, (position, index) => {
      const box = place.picture ? boxOf(tokens, place, position) : null;
      const about = { "data-index": index, "data-position": position };
      if (box) {
        const [x, y, width, height] = box;
        const cell = s("rect", { ...about, x, y, width, height }, s("title", {}, tokens.word[position]));
        grid.append(cell);
        return cell;
      }
      const cell = h("span", { ...about, class: "token special" }, tokens.word[position]);
      this.beside.append(cell, " ");
      return cell;
    });
    this.beside.hidden = !this.beside.firstChild;
    if (!place.picture) {
      this.plate.replaceChildren();
      return;
    }
    const what =
      place.kind === "image" ? "The picture as the model reads it" : "The spectrogram of the sound";
    const picture = h("img", { src: place.picture, alt: what, draggable: "false" });
    const drawn = h("div", { class: "drawn" }, picture, grid);
    this.plate.dataset.kind = place.kind;
    this.plate.style.setProperty("--ratio", String((place.columns ?? 1) / (place.rows ?? 1)));
    this.plate.replaceChildren(drawn, ...(place.wave ? [waveOf(place.wave), seconds(place)] : []));
  }

  /**
   * Without a position pointed at, that which is held on to.
   *
   * @param {number} [i]
   * @param {number} [j]
   */
  hover(i, j) {
    if (!this.shown) return;
    const { matrix, found } = this.shown;
    const index = i ?? this.held;
    const only = i === undefined ? undefined : j;
    const lit = index === undefined ? takingPart(found) : similarTo(matrix, index);
    const ends = new Set(
      index === undefined ? [] : only === undefined ? partners(matrix, found, index) : [only],
    );
    this.cells.forEach((cell, k) => {
      const chosen = k === index;
      const dark = (index === undefined ? DIM : DARK) * (1 - (chosen ? 1 : lit(k)));
      if (cell instanceof SVGElement) cell.style.fillOpacity = dark.toFixed(3);
      else if (cell instanceof HTMLElement) cell.style.opacity = Math.max(1 - dark, FAINT).toFixed(3);
      cell.classList.toggle("chosen", chosen);
      cell.classList.toggle("partner", ends.has(k));
    });
    this.panel.read(index, j ?? index);
    this.say(found);
  }

  /** @param {Pairs} found */
  say(found) {
    const { place } = this.session.current.header;
    const [name, names] = place?.kind === "sound" && !place.rows ? ["frame", "frames"] : ["patch", "patches"];
    const one = place?.kind === "inputs" ? "position" : name;
    const none = found.takingPart.filter((count) => !count).length;
    this.about.textContent = [
      `Lit ${one === "position" ? "positions" : names} take part in high pairs, the brighter the more. Point at a ${one}:`,
      "what is similar to it stays lit, and its high pairs are framed; click to hold on to it.",
      `${none} of ${this.cells.length} are in no high pair.`,
    ].join(" ");
  }
}

/** @param {EventTarget | null} target */
function indexOf(target) {
  const cell = target instanceof Element ? target.closest("[data-index]") : null;
  return cell ? Number(cell.getAttribute("data-index")) : undefined;
}

/**
 * How much of the light each position keeps: the less similar half of the others none.
 *
 * @param {Matrix} matrix
 * @param {number} index
 */
function similarTo({ values, size }, index) {
  const row = values.slice(index * size, (index + 1) * size);
  const others = row.filter((_, k) => k !== index).sort();
  const [low, high] = others.length ? [others[others.length >> 1], others[others.length - 1]] : [0, 1];
  return (/** @type {number} */ k) => Math.min(1, Math.max(0, (row[k] - low) / (high - low || 1)));
}

/** @param {Pairs} found */
function takingPart({ takingPart: counts }) {
  const most = Math.max(1, ...counts);
  return (/** @type {number} */ k) => Math.sqrt(counts[k] / most);
}

/**
 * Where on the picture a position is, in shares of its width and height; null for nowhere.
 *
 * @param {Tokens} tokens
 * @param {Place} place
 * @param {number} position
 * @returns {Box | null}
 */
function boxOf(tokens, { kind, rows, columns, duration }, position) {
  const [row, column] = [tokens.row?.[position] ?? 0, tokens.column?.[position] ?? 0];
  if (kind === "image" && rows && columns)
    return row ? [(column - 1) / columns, (row - 1) / rows, 1 / columns, 1 / rows] : null;
  const times = tokens.seconds ?? [];
  const time = times[position];
  if (time === null || time === undefined || !duration) return null;
  const known = times.filter((one) => one !== null);
  const step = known.length > 1 ? known[1] - known[0] : duration;
  const left = Math.max(0, time - step / 2);
  const width = Math.max(0, Math.min(duration, time + step / 2) - left) / duration;
  if (width === 0) return null; // of the silence after the sound
  return rows ? [left / duration, 1 - row / rows, width, 1 / rows] : [left / duration, 0, width, 1];
}

/** @param {[low: number[], high: number[]]} wave */
function waveOf([low, high]) {
  const most = Math.max(1e-9, ...high.map((value, k) => Math.max(Math.abs(value), Math.abs(low[k]))));
  const at = (/** @type {number} */ value) => (1 - value / most).toFixed(3);
  const points = [
    ...high.map((value, k) => `${k + 0.5},${at(value)}`),
    ...low.map((value, k) => `${k + 0.5},${at(value)}`).reverse(),
  ];
  return s(
    "svg",
    {
      class: "wave",
      viewBox: `0 0 ${low.length} 2`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": "The sound as a wave",
    },
    s("polygon", { points: points.join(" ") }),
  );
}

/** @param {Place} place */
function seconds({ duration }) {
  const whole = duration ?? 0;
  const marks = Array.from({ length: 5 }, (_, k) => `${((k / 4) * whole).toFixed(2)} s`);
  return h(
    "div",
    { class: "seconds" },
    marks.map((mark) => h("span", {}, mark)),
  );
}
//# sourceURL=headscope/scene.js
