// Sentences about pairs and heads, said the same way in every view.

import { number, percent, shortened } from "headscope/dom.js";

export const READINGS = {
  raw: ["raw", "C = z·z′: direction and size together", "C = z·z′"],
  cosine: ["cosine", "C / (‖z‖‖z′‖): direction only", "of cosines z·z′ / ‖z‖‖z′‖"],
  centred: [
    "centred",
    "cosine once the mean vector of the text is taken away",
    "of cosines, the mean vector taken away",
  ],
  attention: ["attention", "A: how much each row's token reads from each column's"],
};

export const MEASURES = {
  similarity: ["mean similarity", "mean of C over all pairs of tokens", number],
  size: ["vector size", "mean length of the head's vectors ‖z‖", number],
  common_mode: ["common mode", "‖mean z‖ / mean ‖z‖: how alike all vectors are", (v) => percent(v)],
  range: [
    "range",
    "mean distance of the high pairs, over that of all pairs: 1 is chance",
    (v) => `${v.toFixed(2)} ×`,
  ],
  same_sentence: ["same sentence", "share of the high pairs inside one sentence", (v) => percent(v)],
  repetition: ["repetition", "share of the high pairs that are the same word twice", (v) => percent(v)],
};

export function nameToken(tokens, position, unit) {
  if (unit === "word") return `“${shortened(tokens.word[position], 24)}”`;
  const [piece, word] = [tokens.piece[position], tokens.word[position]];
  const whole = piece === word ? "" : ` in “${shortened(word, 24)}”`;
  return `“${shortened(piece, 24)}”${whole}`;
}

/** 1 for the highest similarity among the pairs; equal ones share a rank. */
export function rankOf({ values, size }, value) {
  let higher = 0;
  for (let i = 0; i < size; i++) {
    for (let at = i * size + i + 1; at < (i + 1) * size; at++) if (values[at] > value) higher++;
  }
  return higher + 1;
}

export function relation(tokens, a, b) {
  const same = [];
  if (tokens.sentence[a] === tokens.sentence[b] && tokens.sentence[a] >= 0) same.push("same sentence");
  if (tokens.word_type[a] === tokens.word_type[b] && tokens.word_type[a] >= 0) same.push("same word");
  return same;
}

/** What the high pairs of a head say, beside what chance would. */
export function summary({ all, high }) {
  const share = (counts, name) => (counts.count ? counts[name] / counts.count : 0);
  const lines = [
    ["same sentence", percent(share(high, "sameSentence")), percent(share(all, "sameSentence"))],
    ["same word", percent(share(high, "sameWord")), percent(share(all, "sameWord"))],
    ["mean distance", share(high, "distances").toFixed(1), share(all, "distances").toFixed(1)],
  ];
  return lines;
}
//# sourceURL=headscope/words.js
