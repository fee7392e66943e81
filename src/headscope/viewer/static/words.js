// Sentences about pairs and heads, said the same way in every view.

import { h, percent, shortened } from "headscope/dom.js";

/** @import { Across, Counts, Header, Kind, Matrix, Pairs, Place, Tokens, Unit } from "headscope/types.js" */

/** @type {Record<Kind, [name: string, definition: string, ofCells: string]>} */
export const READINGS = {
  raw: ["raw", "C = z·z′: direction and size together", "C = z·z′"],
  cosine: ["cosine", "C / (‖z‖‖z′‖): direction only", "of cosines z·z′ / ‖z‖‖z′‖"],
  centred: [
    "centred",
    "cosine once the mean vector of the text is taken away",
    "of cosines, the mean vector taken away",
  ],
  attention: ["attention", "A: how much each row's token reads from each column's", "of attention weights"],
};

/**
 * @param {Tokens} tokens
 * @param {number} position
 * @param {Unit} unit
 */
export function nameToken(tokens, position, unit) {
  const lost = tokens.unknown[position] ? " (unknown to the model)" : "";
  if (unit === "word") return `“${shortened(tokens.word[position], 24)}”${lost}`;
  const [piece, word] = [tokens.piece[position], tokens.word[position]];
  const whole = piece === word ? "" : ` in “${shortened(word, 24)}”`;
  return `“${shortened(piece, 24)}”${whole}${lost}`;
}

/**
 * A token in a list: its piece inside its word, and whether the model knows it.
 *
 * @param {Tokens} tokens
 * @param {number} position
 * @param {Unit} unit
 */
export function tokenMark(tokens, position, unit) {
  const [piece, word, place] = [tokens.piece[position], tokens.word[position], tokens.place[position]];
  const unknown = tokens.unknown[position];
  const rest = (/** @type {string} */ part) =>
    part === "" ? null : h("span", { class: "rest" }, shortened(part, 12));
  const parts =
    unit === "word" || place < 0 || piece === word
      ? [shortened(unit === "word" ? word : piece, 20)]
      : [rest(word.slice(0, place)), shortened(piece, 12), rest(word.slice(place + piece.length))];
  return h(
    "bdi",
    { class: unknown ? "mark unknown" : "mark", title: unknown ? UNKNOWN : null },
    parts,
    unknown ? h("small", {}, "unknown") : null,
  );
}

export const UNKNOWN = "Not in the model's vocabulary: it read its unknown token here";
const MUCH_UNKNOWN = 0.05;

/**
 * How much of the text the model does not know; "" where it knows all of it.
 *
 * @param {Tokens} tokens
 */
export function aboutUnknown({ unknown, special }) {
  const [lost, all] = [unknown.filter(Boolean).length, special.filter((is) => !is).length];
  if (!lost) return { text: "", much: false };
  const text = `${lost.toLocaleString("en")} of ${all.toLocaleString("en")} tokens (${percent(lost / all)}) are unknown to the model and marked`;
  if (lost / all <= MUCH_UNKNOWN) return { text: `${text}.`, much: false };
  const why =
    "It read one and the same token in their place: they are alike for no other reason, and what is shown here says little of the text.";
  return { text: `${text}. ${why} Read it with a model of its language and script.`, much: true };
}

/**
 * 1 for the highest similarity among the pairs; equal ones share a rank.
 *
 * @param {Pick<Matrix, "values" | "size">} matrix
 * @param {number} value
 */
export function rankOf({ values, size }, value) {
  let higher = 0;
  for (let i = 0; i < size; i++) {
    for (let at = i * size + i + 1; at < (i + 1) * size; at++) if (values[at] > value) higher++;
  }
  return higher + 1;
}

/**
 * @param {Tokens} tokens
 * @param {number} a
 * @param {number} b
 */
export function relation(tokens, a, b) {
  /** @type {string[]} */
  const same = [];
  if (tokens.sentence[a] === tokens.sentence[b] && tokens.sentence[a] >= 0) same.push("same sentence");
  const pieces = tokens.word_number[a] === tokens.word_number[b] && tokens.word_number[a] >= 0;
  if (pieces) same.push("pieces of one word");
  else if (tokens.word_type[a] === tokens.word_type[b] && tokens.word_type[a] >= 0) same.push("same word");
  if (tokens.window[a] !== tokens.window[b])
    same.push(`read in windows ${tokens.window[a] + 1} and ${tokens.window[b] + 1}`);
  return same;
}

/**
 * What distance is counted in.
 *
 * @param {Place | undefined} place
 */
export function distanceUnit(place) {
  if (!place) return "tokens";
  if (place.rows) return "patches";
  return place.kind === "sound" ? "frames" : "positions";
}

/**
 * How far apart two tokens stand, or patches on their grid; "" where one stands nowhere.
 *
 * @param {Tokens} tokens
 * @param {number} a
 * @param {number} b
 */
export function apart({ row, column }, a, b) {
  if (!row || !column) return String(b - a);
  if (!row[a] || !row[b]) return "";
  return String(Number(Math.hypot(row[a] - row[b], column[a] - column[b]).toFixed(1)));
}

/**
 * How a long text was read, and what becomes of pairs across its windows; "" for a short one.
 *
 * @param {Header} header
 * @param {Across} across
 */
export function aboutWindows({ windows }, across) {
  if (windows < 2) return "";
  const said = across === "kept" ? "taken in here" : "left out of high pairs";
  return `The text was read in ${windows} windows, which meet at the thick lines. Tokens of two windows were read apart, so pairs across them say less: they are ${said}.`;
}

/**
 * What the high pairs of a head say, beside what chance would.
 *
 * @param {Pairs} found
 * @param {Place} [place] where it is no text; what only a text has is not there
 */
export function summary({ all, high }, place) {
  /** @type {(counts: Counts, name: "sameSentence" | "sameWord") => number} */
  const share = (counts, name) => (counts.count ? counts[name] / counts.count : 0);
  const mean = (/** @type {Counts} */ { distances, placed }) => (placed ? distances / placed : 0).toFixed(1);
  if (place) return place.kind === "inputs" ? [] : [["mean distance", mean(high), mean(all)]];
  const lines = [
    ["same sentence", percent(share(high, "sameSentence")), percent(share(all, "sameSentence"))],
    ["same word", percent(share(high, "sameWord")), percent(share(all, "sameWord"))],
    ["mean distance", mean(high), mean(all)],
  ];
  return lines;
}
//# sourceURL=headscope/words.js
