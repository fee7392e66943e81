// The reading that is open, and the answers about it: what every view asks for.

import { scaleOf } from "headscope/colours.js";
import { Compute } from "headscope/compute.js";
import { parseRule } from "headscope/rules.js";
import { findSource } from "headscope/source.js";
import { State } from "headscope/state.js";
import { Texts } from "headscope/texts.js";
import { theme } from "headscope/theme.js";

/** @import {
 *   Answer, Ask, Asked, HeadMeasures, HighRule, Kind, Matrix, Model, Opened, Question, Range, Reading, Request,
 *   Study, Thumbnails
 * } from "headscope/types.js" */

/** @typedef {[layer: number, head: number]} Place */

export const LISTED_PAIRS = 300;
const SHORT_TEXT = 1500; // characters that an address may carry

export class Session {
  constructor() {
    this.state = new State();
    this.compute = new Compute();
    this.source = findSource();
    this.texts = new Texts(this);
    /** @type {[Opened | null, Opened | null]} */
    this.opened = [null, null]; // the reading, and a second one to compare it with
    /** @type {Map<string, Promise<unknown>>} */
    this.cache = new Map();
    /** @type {((place: number) => void)[]} */
    this.listeners = [];
    /** @type {Study | null} */
    this.given = null; // the study that came with the page, of the first model
    this.firstModel = "";
    this.firstText = "";
  }

  get reading() {
    return this.opened[0];
  }

  /** The reading, for views of one; none is shown before there is one. */
  get current() {
    if (!this.opened[0]) throw new Error("No text is open.");
    return this.opened[0];
  }

  /** What it is compared with. */
  get second() {
    return this.opened[1] ?? this.current;
  }

  /**
   * The number of a layer by its row: another one where a hybrid has layers without heads.
   *
   * @param {number} row
   */
  layerNumber(row, model = this.model) {
    return model.numbers[row - 1] ?? row;
  }

  /** What is looked at has so many layers and heads, with a reading or without. */
  get model() {
    const found = this.reading?.model ?? this.given?.model;
    if (!found) throw new Error("Neither a text nor a study is open.");
    return found;
  }

  /**
   * Which pairs are high.
   *
   * @returns {HighRule}
   */
  get rule() {
    const { rule, across } = this.state.values;
    return { ...parseRule(rule), across };
  }

  /** Whether there is anything to look at yet. */
  get ready() {
    return Boolean(this.reading ?? this.given);
  }

  /** The study, where it is of the model that is looked at. */
  get study() {
    const other = this.source.canRead && this.reading && this.reading.request.model !== this.firstModel;
    return other ? null : this.given;
  }

  /**
   * The study's card of a head, if there is one.
   *
   * @param {number} layer
   * @param {number} head
   */
  card(layer, head) {
    return this.study?.cards[(layer - 1) * this.study.model.heads + head - 1];
  }

  /**
   * Open a reading: the one inside the page, or one that the server makes of a text.
   *
   * @param {Request} request
   * @param {0 | 1} place
   */
  async open(request = { model: "", text: "" }, place = 0) {
    const id = `${place}:${this.compute.number}`;
    for await (const part of this.source.parts(request)) {
      this.compute.tell("part", { reading: id, part }, part instanceof ArrayBuffer ? [part] : []);
    }
    const { header } = await this.compute.ask("open", { reading: id });
    const before = this.opened[place];
    const { tokens, model } = header;
    this.opened[place] = { id, request, header, tokens, model, focus: null, segments: null };
    if (before) {
      if (place === 0) this.compute.tell("forget", {});
      this.compute.ask("close", { reading: before.id }); // in its turn, after what is still asked of it
    }
    if (place === 0) {
      const short = this.source.canRead && request.text.length <= SHORT_TEXT;
      this.state.set({
        ...this.within(model),
        text: short && request.text !== this.firstText ? request.text : "",
        model: this.source.canRead && request.model !== this.firstModel ? request.model : "",
      });
    }
    for (const listen of this.listeners) listen(place);
  }

  /**
   * Layer and head kept inside the model's, since an address may name any.
   *
   * @param {Model} model
   */
  within({ layers, heads }) {
    const inside = (/** @type {number} */ value, /** @type {number} */ most) =>
      Math.min(Math.max(Math.round(value) || 1, 1), most);
    return { layer: inside(this.state.layer, layers), head: inside(this.state.head, heads) };
  }

  /**
   * The second head of a comparison; unless chosen, the next head of the layer, or in another
   * reading the same head.
   *
   * @returns {Place}
   */
  get other() {
    const { layers, heads } = this.second.model;
    const [layer, head] = this.state.values.other.split("-").map(Number);
    const given = layer >= 1 && layer <= layers && head >= 1 && head <= heads;
    if (given) return [layer, head];
    const next = this.opened[1] ? Math.min(this.state.head, heads) : (this.state.head % heads) + 1;
    return [Math.min(this.state.layer, layers), next];
  }

  /**
   * What rows and columns are called: tokens by their piece of the text, or whole words.
   *
   * @param {Opened} reading
   */
  names({ tokens }) {
    return this.state.values.unit === "word" ? tokens.word : tokens.piece;
  }

  /**
   * The positions of what has a row of its own: tokens, or words; as the worker has them.
   *
   * @param {Opened} reading
   */
  rows({ tokens }) {
    const { special, unit } = this.state.values;
    return Array.from(tokens.id.keys()).filter((p) => {
      if (tokens.special[p]) return special === "kept";
      return unit === "token" || p === 0 || tokens.word_number[p] !== tokens.word_number[p - 1];
    });
  }

  /**
   * @template {Kind} [K=Reading]
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   * @param {K} kind
   * @returns {Asked & {kind: K}}
   */
  question(reading, layer, head, kind = /** @type {K} */ (this.state.values.reading)) {
    const { special, unit } = this.state.values;
    return { reading: reading.id, kind, special, unit, layer, head };
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   * @param {Kind} kind
   * @returns {Promise<Matrix>}
   */
  matrix(reading, layer, head, kind) {
    if (kind === "attention") return this.attention(reading, layer, head);
    return this.once("matrix", this.question(reading, layer, head, kind));
  }

  /**
   * A matrix as a picture; `marked`: pairs that are not high recede above the diagonal.
   *
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   * @param {Kind} kind
   * @param {Pick<Matrix, "range">} matrix
   * @param {boolean} marked
   */
  async picture(reading, layer, head, kind, { range }, marked, inks = theme()) {
    const { from, to, colours } = scaleOf(kind, range, inks);
    const rule = marked ? this.rule : null;
    const question = this.question(reading, layer, head, kind);
    return (await this.compute.ask("picture", { ...question, rule, scale: { from, to, colours } })).picture;
  }

  /**
   * All thumbnails as one picture, layers down and heads across.
   *
   * @param {Thumbnails} thumbnails
   */
  async sheet({ ranges, shared }, inks = theme()) {
    const { reading: kind, cells } = this.state.values;
    const { id, model } = this.current;
    const limits = Array.from({ length: model.layers * model.heads }, (_, at) => {
      /** @type {Range} */
      const range = cells === "shared" ? shared : [ranges[2 * at], ranges[2 * at + 1]];
      const { from, to } = scaleOf(kind, range, inks);
      return [from, to];
    });
    const { colours } = scaleOf(kind, shared, inks);
    return (await this.compute.ask("sheet", { reading: id, limits: limits.flat(), colours })).picture;
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   */
  pairs(reading, layer, head, most = LISTED_PAIRS) {
    return this.once("pairs", { ...this.question(reading, layer, head), rule: this.rule, most });
  }

  /**
   * The communities that a head's similarities make of what has a row of its own.
   *
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   */
  communities(reading, layer, head, gamma = 1) {
    return this.once("communities", { ...this.question(reading, layer, head), gamma });
  }

  /**
   * Where every head's attention goes: asked for once, and again after a failure.
   *
   * @param {Opened} reading
   */
  focus(reading) {
    reading.focus ??= this.source.focus(reading).catch((error) => {
      reading.focus = null;
      throw error;
    });
    return reading.focus;
  }

  /**
   * How the text is cut: asked for once, and again after a failure.
   *
   * @param {Opened} reading
   */
  segments(reading) {
    reading.segments ??= this.source.segments(reading).catch((error) => {
      reading.segments = null;
      throw error;
    });
    return reading.segments;
  }

  /**
   * How many pairs are high in both of two heads of one text, and in either.
   *
   * @param {Opened} reading
   * @param {Place} first
   * @param {Place} second
   */
  agreement(reading, first, second) {
    return this.once("agreement", {
      rule: this.rule,
      questions: [first, second].map(([layer, head]) => this.question(reading, layer, head)),
    });
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   */
  async attention(reading, layer, head) {
    const buffer = await this.source.attention(reading, layer, head);
    return this.compute.ask("attention", { ...this.question(reading, layer, head, "attention"), buffer }, [
      buffer,
    ]);
  }

  /** @param {number} blocks */
  thumbnails(blocks) {
    const { reading: kind, special, unit } = this.state.values;
    return this.once("thumbnails", { reading: this.current.id, kind, special, unit, blocks });
  }

  /**
   * Measures of every head, told one at a time as they are worked out.
   *
   * @param {(layer: number, head: number, measures: HeadMeasures) => void} tell
   */
  measures(tell) {
    const reading = this.current;
    const { rule } = this;
    const { layers, heads } = reading.model;
    this.compute.tell("forget", {}); // what was asked under another question
    /** @type {Place[]} */
    const places = Array.from({ length: layers * heads }, (_, at) => [
      Math.floor(at / heads) + 1,
      (at % heads) + 1,
    ]);
    const first = (/** @type {Place} */ [layer, head]) =>
      layer === this.state.layer && head === this.state.head ? 0 : 1;
    for (const [layer, head] of places.sort((a, b) => first(a) - first(b))) {
      const question = { ...this.question(reading, layer, head), rule };
      this.compute.ask("measure", question).then((measures) => measures && tell(layer, head, measures));
    }
  }

  /**
   * The same question is asked once; the last few answers are kept.
   *
   * @template {Ask} A
   * @param {A} ask
   * @param {Question<A>} question
   * @returns {Promise<Answer<A>>}
   */
  once(ask, question) {
    const key = JSON.stringify([ask, question]);
    const kept = /** @type {Promise<Answer<A>> | undefined} */ (this.cache.get(key));
    if (kept) return kept;
    const [oldest] = this.cache.keys();
    if (this.cache.size >= 8) this.cache.delete(oldest);
    const answer = this.compute.ask(ask, question);
    answer.catch(() => this.cache.delete(key));
    this.cache.set(key, answer);
    return answer;
  }
}
//# sourceURL=headscope/session.js
