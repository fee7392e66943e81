// The card of a head: what a study says it does, why, and on which pairs of its corpus.

import { h, number, percent } from "headscope/dom.js";
import { allMeasures } from "headscope/measures.js";

/** Label, evidence, strength and words. */
export function cardHead(card) {
  return [
    h(
      "p",
      { class: "verdict" },
      h("b", { class: "tag" }, h("bdi", {}, card.label)),
      h("span", { class: "hint" }, `strength ${card.strength.toFixed(2)}`),
      h("meter", { min: "0", max: "1", value: card.strength, "aria-label": "Strength of the label" }),
    ),
    h("p", {}, h("bdi", {}, sentence(card.evidence))),
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
  ].filter(Boolean);
}

/** Pairs of the corpus, each end in its context. */
export function examplePairs(card) {
  return h(
    "ol",
    { class: "examples", "aria-label": "Example pairs from the corpus" },
    card.examples.map((pair) =>
      h(
        "li",
        {},
        inContext(pair.first_context, pair.first),
        inContext(pair.second_context, pair.second),
        h(
          "small",
          { class: "hint" },
          `C = ${number(pair.similarity)}, ${pair.distance} tokens apart, `,
          h("bdi", {}, pair.source),
          pair.line ? `, line ${pair.line}` : "",
        ),
      ),
    ),
  );
}

/** Every measure of the study for one head. */
export function cardMeasures(study, at) {
  const cell = (show, value) => (value === null || value === undefined ? "" : show(value));
  let group = "";
  const rows = [...allMeasures(study, null).values()].slice(1).flatMap(({ definition, show, of, ...rest }) => {
    const { value, low, high, chance } = of(at);
    const head =
      rest.group === group ? [] : [h("tr", {}, h("th", { scope: "rowgroup", colspan: "4" }, rest.group.replace("the study: ", "")))];
    group = rest.group;
    return [
      ...head,
      h(
        "tr",
        { title: definition },
        h("th", { scope: "row" }, rest.title),
        h("td", {}, cell(show, value)),
        h("td", {}, low === null || low === undefined ? "" : `${show(low)} – ${show(high)}`),
        h("td", {}, cell(show, chance)),
      ),
    ];
  });
  const names = ["value", "95 % interval", "by chance"].map((name) => h("th", { scope: "col" }, name));
  return h("table", { class: "facts studied" }, h("tr", {}, h("td"), names), rows);
}

/** A context whose word stands in [brackets]: the word is marked instead. */
function inContext(context, word) {
  const at = context.indexOf(`[${word}]`);
  if (at < 0) return h("q", { dir: "auto" }, context);
  const after = context.slice(at + word.length + 2);
  return h(
    "q",
    { dir: "auto" },
    at ? `…${context.slice(0, at)}` : "",
    h("mark", {}, word),
    after ? `${after}…` : "",
  );
}

/** "anchor: ‘sea’" is an anchor. */
export function kindOf(label) {
  return label.split(":")[0];
}

function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
//# sourceURL=headscope/card.js
