"use strict";
// High pairs and what they tell of a head, as pairs/reference.py and pairs/rules.py define them.

/** How many of `pairs` the rule quantile(q) asks for; the share is meant in decimal. */
function quantileNumber(q, pairs) {
  return Math.min(pairs, Math.max(1, Math.ceil(Math.round(q * pairs * 1e9) / 1e9)));
}

/** The similarity from which on each token calls a pair high: Float64Array (count). */
function thresholds(C, count, rule) {
  const values = pairValues(C, count);
  const reach = new Float64Array(count).fill(Infinity);
  if (!values.length) return reach;
  if (rule.name === "nearest") {
    const row = new Float32Array(count - 1);
    for (let i = 0; i < count; i++) {
      row.set(C.subarray(i * count, i * count + i));
      row.set(C.subarray(i * count + i + 1, (i + 1) * count), i);
      reach[i] = select(row, row.length - Math.min(rule.number, row.length));
    }
    return reach;
  }
  if (rule.name === "quantile") {
    return reach.fill(select(values, values.length - quantileNumber(rule.number, values.length)));
  }
  const { mean, deviation, largest } = moments(values);
  return reach.fill(rule.name === "peak" ? rule.number * largest : mean + rule.number * deviation);
}

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

/** What is counted over the high pairs, and over all pairs beside it: the chance level. */
function countPairs(C, positions, tokens, reach) {
  const count = positions.length;
  const sentence = positions.map((p) => tokens.sentence[p]);
  const word = positions.map((p) => tokens.word_type[p]);
  const all = emptyCounts(tokens.sentence.length);
  const high = emptyCounts(tokens.sentence.length);
  const takingPart = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) {
      const value = C[i * count + j];
      const distance = positions[j] - positions[i];
      const inside = sentence[i] === sentence[j] && sentence[i] >= 0;
      const repeated = word[i] === word[j] && word[i] >= 0;
      add(all, distance, inside, repeated, value);
      if (value >= reach[i] || value >= reach[j]) {
        add(high, distance, inside, repeated, value);
        takingPart[i]++;
        takingPart[j]++;
      }
    }
  }
  return { all, high, takingPart };
}

function emptyCounts(tokens) {
  return {
    count: 0,
    sum: 0,
    distances: 0,
    sameSentence: 0,
    sameWord: 0,
    byDistance: new Float64Array(tokens),
  };
}

function add(counts, distance, inside, repeated, value) {
  counts.count++;
  counts.sum += value;
  counts.distances += distance;
  counts.byDistance[distance]++;
  if (inside) counts.sameSentence++;
  if (repeated) counts.sameWord++;
}

/** The high pairs, most similar first, at most `most` of them; equal ones in order of position. */
function listPairs(C, positions, reach, most) {
  const count = positions.length;
  const found = [];
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) {
      const value = C[i * count + j];
      if (value >= reach[i] || value >= reach[j]) found.push(i * count + j);
    }
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

/** The measures of one head that the atlas can sort by; names are those of the method page. */
function headMeasures(z, positions, d, kind, tokens, rule) {
  const count = positions.length;
  let size = 0;
  for (let i = 0; i < count; i++) size += norm(z, i, d) / count;
  const common = Math.hypot(...meanVector(z, count, d)) / (size || 1);
  const C = product(prepare(z, count, d, kind), count, d);
  const { all, high } = countPairs(C, positions, tokens, thresholds(C, count, rule));
  const share = (part, of) => (of ? part / of : 0);
  return {
    similarity: share(all.sum, all.count),
    size,
    common_mode: common,
    range: share(share(high.distances, high.count), share(all.distances, all.count)),
    same_sentence: share(high.sameSentence, high.count),
    repetition: share(high.sameWord, high.count),
  };
}
