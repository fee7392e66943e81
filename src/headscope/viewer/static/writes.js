// What a head writes: the words of the vocabulary that it raises and lowers, over the text or at a token.

import { h, messageOf, waiting } from "headscope/dom.js";
import { nameToken } from "headscope/words.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Writes } from "headscope/types.js" */

export class WritesView {
  asked = ""; // what is shown, or on its way

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.about = h("p", { class: "hint" });
    this.words = h("div");
    this.element = h("section", { class: "writes" }, h("h2", {}, "What it writes"), this.about, this.words);
  }

  /** Ask for the chosen head, at the token that is held on to if there is one. */
  async show() {
    const { current: reading, state } = this.session;
    const [layer, head, token] = [state.layer, state.head, state.token];
    const asked = [reading.id, layer, head, token ?? ""].join(" ");
    if (asked === this.asked) return;
    this.asked = asked;
    const { tokens } = this.session.current;
    this.about.replaceChildren(
      token === null ? "Over the text" : h("bdi", {}, nameToken(tokens, token, state.values.unit)),
      ": z W_O against the model’s own words, in standard deviations over the vocabulary. ",
      token === null ? "Hold on to a token to see what it writes there." : "",
    );
    this.words.replaceChildren(waiting("Reading what it writes"));
    const found = await this.session.source.writes(reading, layer, head, token).then(
      (writes) => wordTable(writes),
      (error) => h("p", { class: "hint" }, messageOf(error)),
    );
    if (asked === this.asked) this.words.replaceChildren(found);
  }
}

/** @param {Writes | null} writes */
function wordTable(writes) {
  if (!writes) return h("p", { class: "hint" }, "It is not told here.");
  /** @type {[string, [string, number][]][]} */
  const sides = [
    ["raises", writes.raised],
    ["lowers", writes.lowered],
  ];
  return h(
    "table",
    { class: "facts written" },
    sides.map(([side, words]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, side),
        h(
          "td",
          {},
          words.flatMap(([word, much], k) => [
            k ? ", " : "",
            h("bdi", { class: "word" }, word),
            h("small", { class: "hint" }, ` ${much > 0 ? "+" : "−"}${Math.abs(much).toFixed(1)}`),
          ]),
        ),
      ),
    ),
  );
}
//# sourceURL=headscope/writes.js
