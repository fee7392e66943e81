// The card of a head: what a study says it does, why, and on which pairs of its corpus.

import { h, number, percent } from "headscope/dom.js";
import { allMeasures, isNumber } from "headscope/measures.js";

/** Label, evidence, strength and words, and what they rest on. */
export function cardHead(card, { corpus, reading, rule, special }) {
  const documents = corpus.documents.toLocaleString("en");
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
    h(
      "p",
      { class: "hint" },
      `Over ${documents} documents of `,
      h("bdi", {}, corpus.name),
      `: ${reading} similarity, ${rule}, special tokens ${special.replace("_", " ")}.`,
    ),
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
  const names = ["value", "95 % interval", "by chance"].map((name) => h("th", { scope: "col" }, name));
  const groups = Map.groupBy(allMeasures(study).values(), ({ group }) => group.replace(/^the study:? ?/, ""));
  groups.delete(""); // the strength of the label, which is said already
  const rows = Array.from(groups, ([group, measures]) => [
    h("tr", {}, h("th", { scope: "rowgroup", colspan: "4" }, group)),
    ...measures.map(({ title, definition, show, of }) => {
      const { value, low, high, chance } = of(at);
      const cell = (number) => (isNumber(number) ? show(number) : "");
      const interval = isNumber(low) ? `${show(low)} – ${show(high)}` : "";
      const cells = [cell(value), interval, cell(chance)].map((text) => h("td", {}, text));
      return h("tr", { title: definition }, h("th", { scope: "row" }, title), cells);
    }),
  ]);
  return h("table", { class: "facts studied" }, h("tr", {}, h("td"), names), ...rows);
}

/** A context whose word stands in [brackets]: the word is marked instead, in the middle. */
function inContext(context, word) {
  const at = context.indexOf(`[${word}]`);
  if (at < 0) return h("q", { dir: "auto" }, context);
  const [before, after] = [context.slice(0, at), context.slice(at + word.length + 2)];
  const isCut = (part) => part.length > 35; // else the document begins or ends there
  return h(
    "q",
    { dir: "auto" },
    h("span", { class: "before" }, h("span", {}, isCut(before) ? `…${before}` : before)),
    h("mark", {}, word),
    h("span", { class: "after" }, isCut(after) ? `${after}…` : after),
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
