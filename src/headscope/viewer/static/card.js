// The card of a head: what a study says it does, why, and on which pairs of its corpus.

import { h, number, percent } from "headscope/dom.js";
import { allMeasures, isNumber, told } from "headscope/measures.js";
import { placeOf } from "headscope/texts.js";

/** @import { Card, Example, Study } from "headscope/types.js" */

/**
 * Label, evidence, strength and words, and what they rest on.
 *
 * @param {Card} card
 * @param {Study} study
 */
export function cardHead(card, { corpus, reading, rule, special }) {
  const documents = corpus.documents.toLocaleString("en");
  return [
    h(
      "ul",
      { class: "labels", "aria-label": "Labels of the head, the strongest first" },
      card.labels.map(({ name, strength, evidence }) =>
        h(
          "li",
          {},
          h(
            "p",
            { class: "verdict" },
            h("b", { class: "tag" }, h("bdi", {}, name)),
            h("span", { class: "hint" }, `strength ${strength.toFixed(2)}`),
            h("meter", { min: "0", max: "1", value: strength, "aria-label": `Strength of: ${name}` }),
          ),
          h("p", {}, h("bdi", {}, sentence(evidence))),
        ),
      ),
    ),
    card.anchors.length
      ? h(
          "p",
          { class: "hint" },
          "Words at the ends of its high pairs: ",
          card.anchors.flatMap(([word, share], k) => [
            k ? ", " : "",
            h("bdi", { class: "word" }, word),
            ` ${percent(share)}`,
          ]),
        )
      : null,
    h(
      "p",
      { class: "hint" },
      `Over ${documents} documents of `,
      h("bdi", {}, corpus.name),
      `: ${reading} similarity, ${rule}, special tokens ${special.replace("_", " ")}.`,
    ),
  ].filter((part) => part !== null);
}

/**
 * What was added to the study and is said of a head before its measures, such as what it is worth.
 *
 * @param {Study} study
 * @param {number} at
 */
export function cardNumbers(study, at) {
  const first = Array.from(allMeasures(study).values()).filter((measure) => measure.first);
  return first.map((measure) =>
    h(
      "p",
      { title: measure.definition },
      h("b", {}, measure.title),
      ` ${told(measure, measure.of(at))} ${measure.unit}`,
    ),
  );
}

/**
 * Pairs of the corpus, each end in its context, and a way to them where their text is at hand.
 *
 * @param {Card} card
 * @param {(pair: Example) => (() => void) | null} way
 */
export function examplePairs(card, way) {
  return h(
    "ol",
    { class: "examples", "aria-label": "Example pairs from the corpus" },
    card.examples.map((pair) => examplePair(pair, way(pair))),
  );
}

/**
 * @param {Example} pair
 * @param {(() => void) | null} go
 */
function examplePair(pair, go) {
  return h(
    "li",
    {},
    inContext(pair.first_context, pair.first),
    inContext(pair.second_context, pair.second),
    h(
      "small",
      { class: "hint" },
      `C = ${number(pair.similarity ?? NaN)}, ${pair.distance} tokens apart, `,
      h("bdi", {}, placeOf(pair)),
      pair.shows ? [", shows ", h("bdi", {}, pair.shows)] : null,
      go ? [" · ", h("button", { type: "button", class: "plain", onclick: go }, "Show it there")] : null,
    ),
  );
}

/**
 * Every measure of the study for one head.
 *
 * @param {Study} study
 * @param {number} at
 */
export function cardMeasures(study, at) {
  const names = ["value", "95 % interval", "by chance"].map((name) => h("th", { scope: "col" }, name));
  const groups = Map.groupBy(allMeasures(study).values(), ({ group }) => group.replace(/^the study:? ?/, ""));
  const rows = Array.from(groups, ([group, measures]) => [
    h("tr", {}, h("th", { scope: "rowgroup", colspan: "4" }, group)),
    ...measures.map(({ title, definition, byChance, show, of }) => {
      const { value, low, high, chance } = of(at);
      const cell = (/** @type {unknown} */ part) => (isNumber(part) ? show(part) : "");
      const interval = isNumber(low) && isNumber(high) ? `${show(low)} – ${show(high)}` : "";
      const cells = [cell(value), interval, cell(chance)].map((text) => h("td", {}, text));
      const said = byChance ? `${definition}. By chance: ${byChance}.` : definition;
      return h("tr", { title: said }, h("th", { scope: "row" }, title), cells);
    }),
  ]);
  return h("table", { class: "facts studied" }, h("tr", {}, h("td"), names), ...rows);
}

/**
 * A context whose word stands in [brackets]: the word is marked instead, in the middle.
 *
 * @param {string} context
 * @param {string} word
 */
function inContext(context, word) {
  const at = context.indexOf(`[${word}]`);
  if (at < 0) return h("q", { dir: "auto" }, context);
  const [before, after] = [context.slice(0, at), context.slice(at + word.length + 2)];
  const isCut = (/** @type {string} */ part) => part.length > 35; // else the document begins or ends there
  return h(
    "q",
    { dir: "auto" },
    h("span", { class: "before" }, h("span", {}, isCut(before) ? `…${before}` : before)),
    h("mark", {}, word),
    h("span", { class: "after" }, isCut(after) ? `${after}…` : after),
  );
}

/** The ground behind each kind of label, the most frequent first; ink on them is dark. */
export const KIND_COLOURS = [
  "#d4dde3",
  "#9fd0ec",
  "#f2bf8f",
  "#9fdcc3",
  "#e9b9d4",
  "#f3dd8b",
  "#b9c4f0",
  "#cfe39b",
  "#f0b0a8",
  "#c9c2b8",
];

/**
 * The kinds of the strongest label of every head, each with its colour.
 *
 * @param {Study} study
 * @returns {Map<string, string>}
 */
export function kindColours({ cards }) {
  const first = cards.map(({ labels }) => kindOf(labels[0].name));
  const groups = [...Map.groupBy(first, (kind) => kind)].sort(([, a], [, b]) => b.length - a.length);
  return new Map(groups.map(([kind], n) => [kind, KIND_COLOURS[n % KIND_COLOURS.length]]));
}

/**
 * "separator sink, sentence"
 *
 * @param {Card | null | undefined} card
 */
export function labelsOf(card) {
  return (card?.labels ?? []).map(({ name }) => name).join(", ");
}

/**
 * "anchor: ‘sea’" is an anchor.
 *
 * @param {string} label
 */
export function kindOf(label) {
  return label.split(":")[0];
}

/** @param {string} words */
function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
//# sourceURL=headscope/card.js
