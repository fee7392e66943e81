// The keyboard: every view is reached and walked through without a mouse.

import { h } from "headscope/dom.js";

/** @import { Session } from "headscope/session.js" */
/** @import { Reading } from "headscope/types.js" */

/**
 * What keys do outside of what is looked at.
 *
 * @typedef {object} Actions
 * @property {() => void} theme
 * @property {() => void} help
 * @property {() => void} find
 * @property {() => void} letGo
 * @property {(factor: number) => void} zoom
 * @property {(down: number, right: number) => [layer: number, head: number] | null} next the head
 *   beside the chosen one, where heads do not stand by layer
 */

/** @type {Record<Reading, Reading>} */
const NEXT_READING = { raw: "cosine", cosine: "centred", centred: "raw" };

const KEYS = [
  ["← →", "previous, next head"],
  ["↑ ↓", "previous, next layer; in a sorted atlas, the row above, below"],
  ["a  h  t  g  c", "atlas, head, text, segments, compare"],
  ["r", "raw, cosine, centred"],
  ["s", "special tokens kept or left out"],
  ["w", "a row for each token or each word"],
  ["/", "find a token; Enter goes to the next"],
  ["+  −  0", "zoom in, zoom out, show all"],
  ["d", "light or dark"],
  ["Esc", "let go of the token"],
  ["?", "this list"],
];

export class Help {
  constructor() {
    this.element = h(
      "dialog",
      { class: "help", "aria-label": "Keys" },
      h(
        "form",
        { method: "dialog" },
        h("h2", {}, "Keys"),
        h(
          "table",
          {},
          KEYS.map(([key, does]) =>
            h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, does)),
          ),
        ),
        h("h2", {}, "What is shown"),
        h(
          "p",
          {},
          "Each attention head gives every token a vector z, made of what the head reads for it. The matrix C = z·z′ tells which tokens the head " +
            "makes alike, and so brings together. Its pairs with high C are the head's high pairs; which are high is a rule you choose.",
        ),
        h("button", { class: "main" }, "Close"),
      ),
    );
  }

  open() {
    if (!this.element.open) this.element.showModal();
  }
}

/**
 * @param {Session} session
 * @param {Actions} actions
 */
export function listenToKeys(session, actions) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : document.body;
    const inField = target.matches("input:not([type=checkbox]), textarea, select");
    if (document.querySelector("dialog[open]") || (inField && event.key !== "Escape")) return;
    if (!session.ready) return;
    const { state, model, reading } = session;
    const step = (/** @type {number} */ down, /** @type {number} */ right) => {
      const [layer, head] = actions.next(down, right) ?? [state.layer + down, state.head + right];
      if (layer >= 1 && layer <= model.layers && head >= 1 && head <= model.heads) state.set({ layer, head });
    };
    /** @type {Record<string, () => void>} */
    const always = {
      ArrowLeft: () => step(0, -1),
      ArrowRight: () => step(0, 1),
      ArrowUp: () => step(-1, 0),
      ArrowDown: () => step(1, 0),
      Escape: () => actions.letGo(),
      d: actions.theme,
      "?": actions.help,
    };
    /** @type {Record<string, () => void>} */
    const withText = {
      Enter: () => {
        if (!target.matches("button, a, summary")) state.set({ view: "head" });
      },
      a: () => state.set({ view: "atlas" }),
      h: () => state.set({ view: "head" }),
      t: () => state.set({ view: "text" }),
      g: () => state.set({ view: "segments" }),
      c: () => state.set({ view: "compare" }),
      r: () => state.set({ reading: NEXT_READING[state.values.reading] }),
      s: () => state.set({ special: state.values.special === "kept" ? "left_out" : "kept" }),
      w: () => state.set({ unit: state.values.unit === "token" ? "word" : "token" }),
      "/": actions.find,
      "+": () => actions.zoom(1 / 1.4),
      "-": () => actions.zoom(1.4),
      0: () => actions.zoom(Infinity),
    };
    const does = always[event.key] ?? (reading ? withText[event.key] : undefined);
    if (!does) return;
    if (event.key !== "Enter") event.preventDefault();
    does();
  });
}
//# sourceURL=headscope/keys.js
