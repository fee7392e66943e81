// The texts of its corpus that a study kept: which of them is open, and going to another.

import { h } from "headscope/dom.js";

/** @import { Example, KeptText, Study } from "headscope/types.js" */
/** @import { Session } from "headscope/session.js" */

/**
 * The kept text that is open; undefined for any other text.
 *
 * @param {Session} session
 * @returns {KeptText | undefined}
 */
export function openText({ source, reading, study }) {
  if (!reading || !study) return undefined;
  return study.texts.find(({ number, text }) =>
    source.canRead ? text === reading.request.text : number === study.shown,
  );
}

/** @param {{source: string, line: number | null}} text */
export function placeOf({ source, line }) {
  return line === null ? source : `${source}, line ${line}`;
}

/** A choice among the kept texts, where a model is there to read them. */
export class Texts {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    /** @type {(error: unknown) => void} */
    this.fail = (error) => console.error(error);
    /** @type {Study | null} */
    this.listed = null;
    this.element = h("select", {
      class: "texts",
      "aria-label": "Text of the study's corpus",
      onchange: () => this.open(Number(this.element.value)).catch(this.fail),
    });
  }

  update() {
    const { study, source, reading } = this.session;
    this.element.hidden = !(study && reading && source.canRead && study.texts.length);
    if (!study || this.element.hidden) return;
    if (study !== this.listed) {
      this.listed = study;
      this.element.replaceChildren(
        h("option", { value: "", disabled: true }, "not of the corpus"),
        ...study.texts.map((text) =>
          h("option", { value: text.number }, `text ${text.number}: ${placeOf(text)}`),
        ),
      );
    }
    this.element.value = String(openText(this.session)?.number ?? "");
    this.element.title = this.element.value
      ? `A text of the corpus that was studied, one of ${study.texts.length} that were kept.`
      : "This text is not of the corpus that was studied: cards and labels are about other texts.";
  }

  /** @param {number} number */
  async open(number) {
    const text = this.session.study?.texts.find((kept) => kept.number === number)?.text;
    if (text === undefined || !this.session.reading) return;
    await this.session.open({ model: this.session.reading.request.model, text });
  }

  /**
   * What goes to an example pair of a head, in its text; null where that is not at hand.
   *
   * @param {number} layer
   * @param {number} head
   * @returns {(pair: Example) => (() => void) | null}
   */
  wayTo(layer, head) {
    return (pair) => (this.has(pair) ? () => this.goTo(pair, layer, head).catch(this.fail) : null);
  }

  /**
   * Show an example pair of a head in its text, seen as the study is told.
   *
   * @param {Example} pair
   * @param {number} layer
   * @param {number} head
   */
  async goTo(pair, layer, head) {
    const { study, state } = this.session;
    if (!study) return;
    if (openText(this.session)?.number !== pair.text) await this.open(pair.text);
    const { reading, special, rule } = study;
    const token = pair.first_position;
    state.set({ view: "head", layer, head, token, reading, special, rule, unit: "token" });
  }

  /**
   * Whether a pair's text can be gone to.
   *
   * @param {Example} pair
   */
  has(pair) {
    const { study, source } = this.session;
    if (!study || !this.session.reading) return false;
    return source.canRead
      ? study.texts.some(({ number }) => number === pair.text)
      : study.shown === pair.text;
  }
}
//# sourceURL=headscope/texts.js
