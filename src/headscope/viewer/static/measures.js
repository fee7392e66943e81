// What heads can be put in order, left out and coloured by: measures of this text, worked out here,
// and those of a study, each with the chance level and the interval that the study gives it.

import { number, percent } from "headscope/dom.js";
import { MEASURES } from "headscope/words.js";

const share = (value) => percent(value);
const twoDigits = (value) => value.toFixed(2);

// As docs/method.md defines them; a measure that is not here goes by its name.
const STUDIED = {
  first_token: ["attention on the first token", share],
  separator: ["attention on separators", share],
  sentence_end: ["attention on marks that end a sentence", share],
  comma: ["attention on commas", share],
  other_punctuation: ["attention on other punctuation", share],
  word: ["attention on words", share],
  previous_token: ["attention on the token before", share],
  own_token: ["attention on the token itself", share],
  next_token: ["attention on the token after", share],
  own_sentence: ["attention inside the token's own sentence", share],
  entropy: ["entropy of the attention of a token, in nats", number],
  confidence: ["largest attention weight of a token", share],
  separators: ["attention on separators and ends of sentences", share],
  attended_columns: ["how many tokens share its attention", number],
  sink: ["share of texts in which one token gets over 30 % of all attention", share],
  norm: ["mean length of its vectors ‖z‖", number],
  norm_spread: ["standard deviation of ‖z‖ over its mean", number],
  common_mode: ["‖mean z‖ / mean ‖z‖: how alike all vectors are", share],
  effective_rank: ["in how many directions its vectors spread", number],
  similarity: ["mean of C over all pairs", number],
  similarity_std: ["standard deviation of C over all pairs", number],
  contrast: ["spread of C against its size: 0 where all pairs are alike", number],
  mean_distance: ["mean distance of the high pairs, in tokens", number],
  median_distance: ["median distance of the high pairs, in tokens", number],
  beyond_64: ["high pairs more than 64 tokens apart", share],
  beyond_128: ["high pairs more than 128 tokens apart", share],
  same_sentence: ["high pairs inside one sentence", share],
  same_sentence_matched: ["the same, against what their distances explain", share],
  same_token: ["high pairs of the same token", share],
  same_word: ["high pairs of the same word", share],
  detection: ["how well C tells repeated words from others (AUC; chance is 0.5)", number],
  token_share: ["ends of high pairs that are one token, the anchor", share],
  token_surroundings: ["high pairs next to that token", share],
  word_share: ["ends of high pairs that are one word, the anchor", share],
  word_surroundings: ["high pairs next to that word", share],
  unrelated: ["high pairs far apart, in different sentences, of different words", share],
  snr: ["signal-to-noise: related against unrelated pairs", number],
  scattered: ["high pairs outside all clusters on the diagonal", share],
};

/** Every measure by its name: {group, title, definition, show, of(place)}; of gives {value, …}. */
export function allMeasures(study, ofText) {
  const found = new Map(study ? studied(study) : []);
  if (!ofText) return found;
  for (const [name, [title, definition, show]] of Object.entries(MEASURES)) {
    const of = (at) => ({ value: ofText.get(at)?.[name] ?? null });
    found.set(name, { group: "this text", title, definition, show, of });
  }
  return found;
}

function* studied({ cards, measures }) {
  const strength = (at) => ({ value: cards[at].strength });
  const fit = "how well the head's label fits, from 0 to 1";
  const title = "strength of the label";
  yield ["study.strength", { group: "the study", title, definition: fit, show: twoDigits, of: strength }];
  for (const { measure, name, ...numbers } of measures) {
    const [definition, show] = STUDIED[name] ?? ["", number];
    const parts = Object.entries(numbers);
    yield [
      `study.${name}`,
      {
        group: `the study: ${measure}`,
        title: name.replaceAll("_", " "),
        definition,
        show,
        of: (at) => Object.fromEntries(parts.map(([part, values]) => [part, values[at]])),
        hasChance: Boolean(numbers.lift),
      },
    ];
  }
}

/** "35 % [31 %, 40 %], by chance 2 %" */
export function told({ show }, { value, low, high, chance }) {
  if (!isNumber(value)) return "–";
  const interval = isNumber(low) ? ` [${show(low)}, ${show(high)}]` : "";
  return `${show(value)}${interval}${isNumber(chance) ? `, by chance ${show(chance)}` : ""}`;
}

export function isNumber(value) {
  return typeof value === "number";
}
//# sourceURL=headscope/measures.js
