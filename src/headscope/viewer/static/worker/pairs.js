"use strict";
// High pairs and what they tell of a head, as pairs/reference.py and pairs/rules.py define them.

/** @typedef {import("../types.js").Counts} Counts */
/** @typedef {import("../types.js").HeadMeasures} HeadMeasures */
/** @typedef {import("../types.js").HighRule} HighRule */
/** @typedef {import("../types.js").Rule} Rule */
/** @typedef {import("../types.js").Tokens} Tokens */

/** From which similarity on the pairs of a row are high, and which of them take part. */
/** @typedef {{reach: Float64Array, windows: Int32Array | null}} High */

/**
 * How many of `pairs` the rule quantile(q) asks for; the share is meant in decimal.
 *
 * @param {number} q
 * @param {number} pairs
 */
function quantileNumber(q, pairs) {
  return Math.min(pairs, Math.max(1, Math.ceil(Math.round(q * pairs * 1e9) / 1e9)));
}

/**
 * The similarity from which on each token calls a pair high: (count). Given the `windows` of the
 * rows, pairs across them take no part.
 *
 * @param {Float32Array} C
 * @param {number} count
 * @param {Rule} rule
 * @param {Int32Array | null} windows
 */
function thresholds(C, count, rule, windows) {
  const values = pairValues(C, count, windows);
  const reach = new Float64Array(count).fill(Infinity);
  if (!values.length) return reach;
  if (rule.name === "nearest") {
    const row = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      let others = 0;
      for (let j = 0; j < count; j++) {
        if (j !== i && (windows === null || windows[i] === windows[j])) row[others++] = C[i * count + j];
      }
      if (others) reach[i] = select(row.subarray(0, others), others - Math.min(rule.number, others));
    }
    return reach;
  }
  if (rule.name === "quantile") {
    return reach.fill(select(values, values.length - quantileNumber(rule.number, values.length)));
  }
  const { mean, deviation, largest } = moments(values);
  return reach.fill(rule.name === "peak" ? rule.number * largest : mean + rule.number * deviation);
}

/**
 * The windows of the rows, where pairs across windows take no part.
 *
 * @param {Tokens} tokens
 * @param {Int32Array} positions
 * @param {HighRule} rule
 */
function windowsOf(tokens, positions, { across }) {
  const windows = positions.map((p) => tokens.window[p]);
  return across === "kept" || windows.every((window) => window === windows[0]) ? null : windows;
}

/**
 * Which pairs of rows are high.
 *
 * @param {Float32Array} C
 * @param {number} count
 * @param {High} high
 * @returns {(i: number, j: number) => boolean}
 */
function highPair(C, count, { reach, windows }) {
  return (i, j) => {
    const value = C[i * count + j];
    return (value >= reach[i] || value >= reach[j]) && (windows === null || windows[i] === windows[j]);
  };
}

/** @param {Float32Array} values */
function moments(values) {
  let [sum, smallest, largest] = [0, Infinity, -Infinity];
  for (const value of values) {
    sum += value;
    if (value < smallest) smallest = value;
    if (value > largest) largest = value;
  }
  if (smallest === largest) return { mean: smallest, deviation: 0, largest };
  const mean = sum / values.length;
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return { mean, deviation: Math.sqrt(squares / values.length), largest };
}

/**
 * What is counted over the high pairs, and over all pairs beside it: the chance level.
 *
 * @param {Float32Array} C
 * @param {Int32Array} positions
 * @param {Tokens} tokens
 * @param {High} how
 */
function countPairs(C, positions, tokens, how) {
  const count = positions.length;
  const isHigh = highPair(C, count, how);
  const sentence = positions.map((p) => tokens.sentence[p]);
  const word = positions.map((p) => tokens.word_type[p]);
  const occurrence = positions.map((p) => tokens.word_number[p]);
  const all = emptyCounts(tokens.sentence.length);
  const high = emptyCounts(tokens.sentence.length);
  const takingPart = new Int32Array(count);
  const apart = distanceOf(tokens);
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) {
      if (how.windows !== null && how.windows[i] !== how.windows[j]) continue;
      const value = C[i * count + j];
      const distance = apart(positions[i], positions[j]);
      const inside = sentence[i] === sentence[j] && sentence[i] >= 0;
      const repeated = word[i] === word[j] && word[i] >= 0 && occurrence[i] !== occurrence[j];
      add(all, distance, inside, repeated, value);
      if (isHigh(i, j)) {
        add(high, distance, inside, repeated, value);
        takingPart[i]++;
        takingPart[j]++;
      }
    }
  }
  return { all, high, takingPart };
}

/**
 * How far apart two positions stand: tokens in a text, patches on a grid; NaN where one stands
 * nowhere.
 *
 * @param {Tokens} tokens
 * @returns {(a: number, b: number) => number}
 */
function distanceOf({ row, column }) {
  if (!row || !column) return (a, b) => b - a;
  return (a, b) => (row[a] && row[b] ? Math.hypot(row[a] - row[b], column[a] - column[b]) : NaN);
}

/**
 * @param {number} tokens
 * @returns {Counts}
 */
function emptyCounts(tokens) {
  return {
    count: 0,
    sum: 0,
    placed: 0,
    distances: 0,
    sameSentence: 0,
    sameWord: 0,
    byDistance: new Float64Array(tokens),
  };
}

/**
 * @param {Counts} counts
 * @param {number} distance
 * @param {boolean} inside
 * @param {boolean} repeated
 * @param {number} value
 */
function add(counts, distance, inside, repeated, value) {
  counts.count++;
  counts.sum += value;
  if (!Number.isNaN(distance)) {
    counts.placed++;
    counts.distances += distance;
    counts.byDistance[Math.min(Math.round(distance), counts.byDistance.length - 1)]++;
  }
  if (inside) counts.sameSentence++;
  if (repeated) counts.sameWord++;
}

/**
 * The high pairs, most similar first, at most `most` of them; equal ones in order of position.
 *
 * @param {Float32Array} C
 * @param {Int32Array} positions
 * @param {High} how
 * @param {number} most
 * @returns {[row: number, column: number, similarity: number][]}
 */
function listPairs(C, positions, how, most) {
  const count = positions.length;
  const isHigh = highPair(C, count, how);
  /** @type {number[]} */
  const found = [];
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) if (isHigh(i, j)) found.push(i * count + j);
  }
  let kept = found;
  if (found.length > most) {
    // Only the best are sorted: all pairs of a long text may be high.
    const cut = select(
      Float32Array.from(found, (at) => C[at]),
      found.length - most,
    );
    kept = found.filter((at) => C[at] >= cut);
  }
  kept.sort((a, b) => C[b] - C[a] || a - b);
  return kept.slice(0, most).map((at) => [Math.floor(at / count), at % count, C[at]]);
}

/**
 * The measures of one head that the atlas can sort by; names are those of the method page.
 *
 * @param {Float64Array} z
 * @param {Int32Array} positions
 * @param {number} d
 * @param {Kind} kind
 * @param {Tokens} tokens
 * @param {HighRule} rule
 * @returns {HeadMeasures}
 */
function headMeasures(z, positions, d, kind, tokens, rule) {
  const count = positions.length;
  let size = 0;
  for (let i = 0; i < count; i++) size += norm(z, i, d) / count;
  const common = Math.hypot(...meanVector(z, count, d)) / (size || 1);
  const C = product(prepare(z, count, d, kind), count, d);
  const windows = windowsOf(tokens, positions, rule);
  const reach = thresholds(C, count, rule, windows);
  const { all, high } = countPairs(C, positions, tokens, { reach, windows });
  const share = (/** @type {number} */ part, /** @type {number} */ of) => (of ? part / of : 0);
  return {
    similarity: share(all.sum, all.count),
    size,
    common_mode: common,
    range: share(share(high.distances, high.placed), share(all.distances, all.placed)),
    same_sentence: share(high.sameSentence, high.count),
    repetition: share(high.sameWord, high.count),
  };
}
