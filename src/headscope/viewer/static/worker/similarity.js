"use strict";
// Similarity from head vectors, as pairs/reference.py defines it. This and its neighbours are
// classic scripts, joined end to end into the one worker that every shell starts from a Blob.

/** @typedef {import("../types.js").Header} Header */
/** @typedef {import("../types.js").Kind} Kind */
/** @typedef {import("../types.js").Range} ColourRange */

/** A reading that is open: its vectors as float16, (layers, heads, tokens, head size). */
/** @typedef {{header: Header, halves: Uint16Array, size: number}} OpenReading */

/** What has a row of its own: from which position on, and of how many tokens. */
/** @typedef {{positions: Int32Array, counts: number[]}} Rows */

const NO_DIRECTION = 1e-6;

// The value of each of the 65,536 float16 bit patterns: a table is faster than arithmetic.
const HALF = (() => {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? NaN
            : Infinity
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    table[bits] = bits & 32768 ? -size : size;
  }
  return table;
})();

/**
 * The vectors of one head, a row for each of `positions`: Float64Array (rows × head size). A row
 * is the mean of `counts` tokens from its position on: of one token, or of the pieces of a word.
 *
 * @param {OpenReading} reading
 * @param {number} layer
 * @param {number} head
 * @param {Rows} rows
 */
function headVectors(reading, layer, head, { positions, counts }) {
  const { heads, head_size: d } = reading.header.model;
  const start = ((layer - 1) * heads + head - 1) * reading.size * d;
  const scale = reading.header.scales[layer - 1][head - 1];
  const z = new Float64Array(positions.length * d);
  for (let k = 0; k < positions.length; k++) {
    for (let piece = 0; piece < counts[k]; piece++) {
      const from = start + (positions[k] + piece) * d;
      for (let c = 0; c < d; c++) z[k * d + c] += (HALF[reading.halves[from + c]] * scale) / counts[k];
    }
  }
  return z;
}

/**
 * Prepare vectors in place so that their scalar products are the reading asked for.
 *
 * @param {Float64Array} z
 * @param {number} count
 * @param {number} d
 * @param {Kind} kind
 */
function prepare(z, count, d, kind) {
  if (kind === "raw") return z;
  let longest = 0;
  for (let i = 0; i < count; i++) longest = Math.max(longest, norm(z, i, d));
  if (kind === "centred") {
    const mean = meanVector(z, count, d);
    for (let i = 0; i < count; i++) for (let c = 0; c < d; c++) z[i * d + c] -= mean[c];
  }
  const shortest = kind === "centred" ? NO_DIRECTION * longest : 0;
  for (let i = 0; i < count; i++) {
    const length = norm(z, i, d);
    const factor = length > shortest ? 1 / length : 0;
    for (let c = 0; c < d; c++) z[i * d + c] *= factor;
  }
  return z;
}

/**
 * @param {Float64Array} z
 * @param {number} i
 * @param {number} d
 */
function norm(z, i, d) {
  let sum = 0;
  for (let c = i * d; c < i * d + d; c++) sum += z[c] * z[c];
  return Math.sqrt(sum);
}

/**
 * @param {Float64Array} z
 * @param {number} count
 * @param {number} d
 */
function meanVector(z, count, d) {
  const mean = new Float64Array(d);
  for (let i = 0; i < count; i++) for (let c = 0; c < d; c++) mean[c] += z[i * d + c] / count;
  return mean;
}

/**
 * The similarity matrix C (count × count) of prepared vectors.
 *
 * @param {Float64Array} z
 * @param {number} count
 * @param {number} d
 */
function product(z, count, d) {
  const C = new Float32Array(count * count);
  for (let i = 0; i < count; i++) {
    const a = z.subarray(i * d, i * d + d);
    for (let j = i; j < count; j++) {
      let sum = 0;
      for (let c = 0, at = j * d; c < d; c++, at++) sum += a[c] * z[at];
      C[i * count + j] = sum;
      C[j * count + i] = sum;
    }
  }
  return C;
}

/**
 * C averaged over blocks of tokens, blocks × blocks, without making C: the mean of z_i · z_j over
 * two blocks is the product of the two mean vectors.
 *
 * @param {Float64Array} z
 * @param {number} count
 * @param {number} d
 * @param {number} blocks
 */
function blockMeans(z, count, d, blocks) {
  const means = new Float64Array(blocks * d);
  for (let b = 0; b < blocks; b++) {
    const [from, to] = [Math.floor((b * count) / blocks), Math.floor(((b + 1) * count) / blocks)];
    for (let i = from; i < to; i++) {
      for (let c = 0; c < d; c++) means[b * d + c] += z[i * d + c] / (to - from);
    }
  }
  return product(means, blocks, d);
}

/**
 * The k-th smallest value (k from 0); the array is put into another order.
 *
 * @param {Float32Array} values
 * @param {number} k
 */
function select(values, k) {
  let [left, right] = [0, values.length - 1];
  while (right > left) {
    const middle = (left + right) >> 1;
    const pivot = Math.max(
      Math.min(values[left], values[middle]),
      Math.min(Math.max(values[left], values[middle]), values[right]),
    );
    let [i, j] = [left, right];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) {
        const value = values[i];
        values[i++] = values[j];
        values[j--] = value;
      }
    }
    if (k <= j) right = j;
    else if (k >= i) left = i;
    else break;
  }
  return values[k];
}

/**
 * The values of all pairs i < j, of those within one window where `windows` of the rows are given.
 *
 * @param {Float32Array} C
 * @param {number} count
 * @param {Int32Array | null} windows
 */
function pairValues(C, count, windows) {
  const values = new Float32Array((count * (count - 1)) / 2);
  let at = 0;
  for (let i = 0; i < count; i++) {
    for (let j = i + 1; j < count; j++) {
      if (windows === null || windows[i] === windows[j]) values[at++] = C[i * count + j];
    }
  }
  return values.subarray(0, at);
}

/**
 * The values of the pairs that set the colours: those without special tokens, whose rows stand out
 * in most heads; all of them where nothing else is left.
 *
 * @param {Float32Array} C
 * @param {boolean[]} special
 */
function plainValues(C, special) {
  const count = special.length;
  const plain = special.flatMap((is, row) => (is ? [] : [row]));
  if (plain.length < 2) return pairValues(C, count, null);
  const values = new Float32Array((plain.length * (plain.length - 1)) / 2);
  let at = 0;
  for (const i of plain) for (const j of plain) if (j > i) values[at++] = C[i * count + j];
  return values;
}

/**
 * From the 1st to the 99th percentile of some values, and not to the very last of ten or more, so
 * that a few outliers do not grey all.
 *
 * @param {Float32Array} values
 * @returns {ColourRange}
 */
function colourRange(values) {
  if (!values.length) return [0, 1];
  const last = values.length - 1;
  const beyond = Math.max(Math.round(0.01 * last), last > 8 ? 1 : 0);
  return [select(values, beyond), select(values, last - beyond)];
}
