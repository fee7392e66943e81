// The reading that is open, and the answers about it: what every view asks for.

import { scaleOf } from "headscope/colours.js";
import { Compute } from "headscope/compute.js";
import { parseRule } from "headscope/rules.js";
import { findSource } from "headscope/source.js";
import { State } from "headscope/state.js";
import { theme } from "headscope/theme.js";

export const LISTED_PAIRS = 300;
const SHORT_TEXT = 1500; // characters that an address may carry

export class Session {
  constructor() {
    this.state = new State();
    this.compute = new Compute();
    this.source = findSource();
    this.opened = [null, null]; // the reading, and a second one to compare it with
    this.cache = new Map();
    this.listeners = [];
    this.given = null; // the study that came with the page, of the first model
  }

  get reading() {
    return this.opened[0];
  }
  get second() {
    return this.opened[1] ?? this.opened[0];
  }

  /** What is looked at has so many layers and heads, with a reading or without. */
  get model() {
    return this.reading?.model ?? this.given?.model;
  }

  /** The study, where it is of the model that is looked at. */
  get study() {
    const other = this.source.canRead && this.reading && this.reading.request.model !== this.firstModel;
    return other ? null : this.given;
  }

  /** The study's card of a head, if there is one. */
  card(layer, head) {
    return this.study?.cards[(layer - 1) * this.study.model.heads + head - 1];
  }

  /** Open a reading: the one inside the page, or one that the server makes of a text. */
  async open(request = {}, place = 0) {
    const id = `${place}:${this.compute.number}`;
    for await (const part of this.source.parts(request)) {
      this.compute.tell("part", { reading: id, part }, part instanceof ArrayBuffer ? [part] : []);
    }
    const { header } = await this.compute.ask("open", { reading: id });
    const before = this.opened[place];
    this.opened[place] = { id, request, header, tokens: header.tokens, model: header.model };
    if (before) {
      if (place === 0) this.compute.tell("forget");
      this.compute.ask("close", { reading: before.id }); // in its turn, after what is still asked of it
    }
    if (place === 0) {
      const short = this.source.canRead && request.text.length <= SHORT_TEXT;
      const text = short && request.text !== this.firstText ? request.text : "";
      const model = this.source.canRead && request.model !== this.firstModel ? request.model : "";
      this.state.set({ ...this.within(header.model), text, model });
    }
    for (const listen of this.listeners) listen(place);
  }

  /** Layer and head kept inside the model's, since an address may name any. */
  within({ layers, heads }) {
    const inside = (value, most) => Math.min(Math.max(Math.round(value) || 1, 1), most);
    return { layer: inside(this.state.layer, layers), head: inside(this.state.head, heads) };
  }

  /** The second head of a comparison; the next head of the layer unless chosen. */
  get other() {
    const { layers, heads } = this.second.model;
    const [layer, head] = this.state.values.other.split("-").map(Number);
    const given = layer >= 1 && layer <= layers && head >= 1 && head <= heads;
    return given ? [layer, head] : [Math.min(this.state.layer, layers), (this.state.head % heads) + 1];
  }

  /** What rows and columns are called: tokens by their piece of the text, or whole words. */
  names({ tokens }) {
    return this.state.values.unit === "word" ? tokens.word : tokens.piece;
  }

  question(reading, layer, head, kind = this.state.values.reading) {
    const { special, unit } = this.state.values;
    return { reading: reading.id, kind, special, unit, layer, head };
  }

  matrix(reading, layer, head, kind) {
    if (kind === "attention") return this.attention(reading, layer, head);
    return this.once("matrix", this.question(reading, layer, head, kind));
  }

  /** A matrix as a picture; `marked`: pairs that are not high recede above the diagonal. */
  async picture(reading, layer, head, kind, { range }, marked, inks = theme()) {
    const { from, to, colours } = scaleOf(kind, range, inks);
    const rule = marked ? parseRule(this.state.values.rule) : null;
    const question = this.question(reading, layer, head, kind);
    return (await this.compute.ask("picture", { ...question, rule, scale: { from, to, colours } })).picture;
  }

  /** All thumbnails as one picture, layers down and heads across. */
  async sheet({ ranges, shared }, inks = theme()) {
    const { reading: kind, cells } = this.state.values;
    const { layers, heads } = this.reading.model;
    const limits = Array.from({ length: layers * heads }, (_, at) => {
      const { from, to } = scaleOf(
        kind,
        cells === "shared" ? shared : [ranges[2 * at], ranges[2 * at + 1]],
        inks,
      );
      return [from, to];
    });
    const { colours } = scaleOf(kind, shared, inks);
    return (await this.compute.ask("sheet", { reading: this.reading.id, limits: limits.flat(), colours }))
      .picture;
  }

  pairs(reading, layer, head, most = LISTED_PAIRS) {
    const rule = parseRule(this.state.values.rule);
    return this.once("pairs", { ...this.question(reading, layer, head), rule, most });
  }

  /** Where every head's attention goes. */
  focus(reading) {
    return this.asked(reading, "focus");
  }

  /** How the text is cut. */
  segments(reading) {
    return this.asked(reading, "segments");
  }

  /** What a saved page has from the start, and the server is asked for once. */
  asked(reading, name) {
    if (reading.header[name] !== undefined) return Promise.resolve(reading.header[name]);
    reading[name] ??= this.source[name](reading.request).catch((error) => {
      reading[name] = null; // it may be asked again
      throw error;
    });
    return reading[name];
  }

  /** How many pairs are high in both of two heads of one text, and in either. */
  agreement(reading, first, second) {
    const rule = parseRule(this.state.values.rule);
    return this.once("agreement", {
      rule,
      questions: [first, second].map(([layer, head]) => this.question(reading, layer, head)),
    });
  }

  async attention(reading, layer, head) {
    if (!this.source.attention) throw new Error(this.source.attentionNote);
    const buffer = await this.source.attention(reading.request, layer, head);
    return this.compute.ask("attention", { ...this.question(reading, layer, head, "attention"), buffer }, [
      buffer,
    ]);
  }

  thumbnails(blocks) {
    const { reading: kind, special, unit } = this.state.values;
    return this.once("thumbnails", { reading: this.reading.id, kind, special, unit, blocks });
  }

  /** Measures of every head, told one at a time as they are worked out. */
  measures(tell) {
    const { rule } = this.state.values;
    const { layers, heads } = this.reading.model;
    this.compute.tell("forget"); // what was asked under another question
    const places = Array.from({ length: layers * heads }, (_, at) => [
      Math.floor(at / heads) + 1,
      (at % heads) + 1,
    ]);
    const first = ([layer, head]) => (layer === this.state.layer && head === this.state.head ? 0 : 1);
    for (const [layer, head] of places.sort((a, b) => first(a) - first(b))) {
      const question = { ...this.question(this.reading, layer, head), rule: parseRule(rule) };
      this.compute.ask("measure", question).then((measures) => measures && tell(layer, head, measures));
    }
  }

  /** The same question is asked once; the last few answers are kept. */
  once(ask, question) {
    const key = JSON.stringify([ask, question]);
    if (!this.cache.has(key)) {
      if (this.cache.size >= 8) this.cache.delete(this.cache.keys().next().value);
      const answer = this.compute.ask(ask, question);
      answer.catch(() => this.cache.delete(key));
      this.cache.set(key, answer);
    }
    return this.cache.get(key);
  }
}
//# sourceURL=headscope/session.js
