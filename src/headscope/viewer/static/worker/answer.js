"use strict";
// The worker's door: questions about readings come in, answers go out. What a person waits for
// comes first; the measures of all heads are worked out one head at a time in between.

/** @typedef {import("../types.js").Ask} Ask */
/** @typedef {import("../types.js").Asked} Asked */
/** @typedef {import("../types.js").Special} Special */
/** @typedef {import("../types.js").ToWorker} ToWorker */
/** @typedef {import("../types.js").FromWorker} FromWorker */
/** @typedef {import("../types.js").Unit} Unit */

/** A question that has an answer. */
/** @typedef {Extract<ToWorker, {id: number}>} AnyQuestion */
/** @typedef {{[A in Ask]: (question: import("../types.js").Question<A>) => import("../types.js").Answer<A> | Promise<import("../types.js").Answer<A>>}} Answers */

/** A matrix as it is kept, with what is high by the last rule. */
/** @typedef {{C: Float32Array, positions: Int32Array, range: ColourRange, rule?: string, high?: High}} Kept */

/** @type {Map<string, OpenReading>} */
const readings = new Map();
/** @type {Map<string, Uint8Array[]>} */
const parts = new Map(); // of readings on their way: bytes
/** @type {Map<string, Kept>} */
const matrices = new Map(); // the last few, since a slider asks about the same one again
const KEPT_MATRICES = 6;
/** @type {{cells: Float32Array, blocks: number} | null} */
let thumbnails = null; // the last that were asked for
/** @type {AnyQuestion[]} */
const urgent = [];
/** @type {AnyQuestion[]} */
const patient = [];
let awake = false;

/** @type {Answers} */
const answers = {
  open({ reading }) {
    const bytes = joined(parts.get(reading) ?? []);
    parts.delete(reading);
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const halves = new Uint16Array(bytes.buffer, bytes.byteOffset + 4 + length);
    readings.set(reading, { header, halves, size: header.tokens.id.length });
    return { header };
  },

  close({ reading }) {
    readings.delete(reading);
    return {};
  },

  thumbnails({ reading, kind, special, unit, blocks: most }) {
    const opened = openReading(reading);
    const { layers, heads, head_size: d } = opened.header.model;
    const rows = rowsOf(opened, special, unit);
    const { positions } = rows;
    const blocks = Math.min(most, positions.length);
    const specialOf = specialBlocks(opened, positions, blocks);
    const cells = new Float32Array(layers * heads * blocks * blocks);
    const ranges = new Float32Array(layers * heads * 2);
    for (let at = 0; at < layers * heads; at++) {
      const z = headVectors(opened, Math.floor(at / heads) + 1, (at % heads) + 1, rows);
      const block = blockMeans(prepare(z, positions.length, d, kind), positions.length, d, blocks);
      cells.set(block, at * blocks * blocks);
      ranges.set(colourRange(plainValues(block, specialOf)), at * 2);
    }
    thumbnails = { cells, blocks };
    return { blocks, tokens: positions.length, ranges, shared: colourRange(sample(cells, specialOf)) };
  },

  async sheet({ reading, limits, colours }) {
    const { layers, heads } = openReading(reading).header.model;
    if (!thumbnails) throw new Error("No thumbnails were asked for.");
    return { picture: await thumbnailSheet(thumbnails, layers, heads, limits, colours) };
  },

  matrix(question) {
    const { C, positions, range } = matrixOf(question);
    return { values: C.slice(), positions, size: positions.length, range };
  },

  async picture({ rule, scale, ...question }) {
    const kept = matrixOf(question);
    const count = kept.positions.length;
    const isHigh = rule && highPair(kept.C, count, highOf(kept, rule, question.reading));
    return { picture: await matrixPicture(kept.C, count, scale, isHigh) };
  },

  pairs({ rule, most, ...question }) {
    const kept = matrixOf(question);
    const { C, positions } = kept;
    const tokens = openReading(question.reading).header.tokens;
    const high = highOf(kept, rule, question.reading);
    const counts = countPairs(C, positions, tokens, high);
    const pairs = listPairs(C, positions, high, most);
    return { ...counts, reach: high.reach.slice(), windows: high.windows?.slice() ?? null, pairs };
  },

  agreement({ rule, questions }) {
    const kept = questions.map(matrixOf);
    const count = kept[0].positions.length;
    const [a, b] = kept.map((one, k) => highPair(one.C, count, highOf(one, rule, questions[k].reading)));
    let [both, either] = [0, 0];
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        const [first, second] = [a(i, j), b(i, j)];
        if (first && second) both++;
        if (first || second) either++;
      }
    }
    return { both, either };
  },

  communities({ gamma, ...question }) {
    const { C, positions } = matrixOf(question);
    const { tokens } = openReading(question.reading).header;
    const windows = positions.map((position) => tokens.window[position]);
    return communitiesOf(C, positions.length, windows, gamma);
  },

  attention({ buffer, ...question }) {
    const { reading, special, unit } = question;
    const opened = openReading(reading);
    const halves = new Uint16Array(buffer);
    const { positions, counts } = rowsOf(opened, special, unit);
    const count = positions.length;
    const values = new Float32Array(count * count);
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < count; j++) {
        const [rows, columns] = [positions[i], positions[j]];
        values[i * count + j] = attentionOf(halves, opened.size, rows, counts[i], columns, counts[j]);
      }
    }
    /** @type {ColourRange} */
    const range = [0, colourRange(plainCells(values, specialRows(opened, positions)))[1]];
    keep(question, { C: values, positions, range });
    return { values: values.slice(), positions, size: count, range };
  },

  async paint({ values, size, scale }) {
    return { picture: await matrixPicture(values, size, scale, null) };
  },

  measure({ reading, kind, special, unit, rule, layer, head }) {
    const opened = openReading(reading);
    const rows = rowsOf(opened, special, unit);
    const d = opened.header.model.head_size;
    const z = headVectors(opened, layer, head, rows);
    return headMeasures(z, rows.positions, d, kind, opened.header.tokens, rule);
  },
};

/** @param {string} id */
function openReading(id) {
  const found = readings.get(id);
  if (!found) throw new Error("This text is not open any more.");
  return found;
}

/**
 * What has a row of its own: tokens, or words with the number of their pieces.
 *
 * @param {OpenReading} reading
 * @param {Special} special
 * @param {Unit} unit
 * @returns {Rows}
 */
function rowsOf(reading, special, unit) {
  const { special: isSpecial, word_number: word } = reading.header.tokens;
  /** @type {number[]} */
  const positions = [];
  /** @type {number[]} */
  const counts = [];
  isSpecial.forEach((is, p) => {
    if (special === "left_out" && is) return;
    const goesOn = unit === "word" && !is && p > 0 && word[p] === word[p - 1] && !isSpecial[p - 1];
    if (goesOn) counts[counts.length - 1]++;
    else {
      positions.push(p);
      counts.push(1);
    }
  });
  return { positions: Int32Array.from(positions), counts };
}

/**
 * Which rows are of special tokens.
 *
 * @param {OpenReading} reading
 * @param {Int32Array} positions
 */
function specialRows({ header }, positions) {
  return Array.from(positions, (position) => header.tokens.special[position]);
}

/**
 * Which blocks of rows are of special tokens, at least by half.
 *
 * @param {OpenReading} reading
 * @param {Int32Array} positions
 * @param {number} blocks
 */
function specialBlocks(reading, positions, blocks) {
  const special = specialRows(reading, positions);
  return Array.from({ length: blocks }, (_, b) => {
    const inside = special.slice(
      Math.floor((b * special.length) / blocks),
      Math.floor(((b + 1) * special.length) / blocks),
    );
    return 2 * inside.filter(Boolean).length >= inside.length;
  });
}

/**
 * The cells whose row and column are of the text itself; all of them where there are none.
 *
 * @param {Float32Array} values
 * @param {boolean[]} special
 */
function plainCells(values, special) {
  const size = special.length;
  const found = values.filter((_, at) => !special[Math.floor(at / size)] && !special[at % size]);
  return found.length ? found : values.slice();
}

/**
 * What one row attends to another: of words the mean over its pieces of what theirs get together.
 *
 * @param {Uint16Array} halves
 * @param {number} size
 * @param {number} i
 * @param {number} rows
 * @param {number} j
 * @param {number} columns
 */
function attentionOf(halves, size, i, rows, j, columns) {
  let sum = 0;
  for (let a = i; a < i + rows; a++) for (let b = j; b < j + columns; b++) sum += HALF[halves[a * size + b]];
  return sum / rows;
}

/**
 * @param {Asked} asked
 * @param {Kept} matrix
 */
function keep({ reading, kind, special, unit, layer, head }, matrix) {
  const [oldest] = matrices.keys();
  if (matrices.size >= KEPT_MATRICES) matrices.delete(oldest);
  matrices.set([reading, kind, special, unit, layer, head].join(), matrix);
}

/**
 * What is high by a rule in a matrix of a reading, worked out once.
 *
 * @param {Kept} kept
 * @param {HighRule} rule
 * @param {string} reading
 */
function highOf(kept, rule, reading) {
  const name = `${rule.name}(${rule.number}) ${rule.across}`;
  if (kept.rule !== name || !kept.high) {
    const windows = windowsOf(openReading(reading).header.tokens, kept.positions, rule);
    kept.rule = name;
    kept.high = { reach: thresholds(kept.C, kept.positions.length, rule, windows), windows };
  }
  return kept.high;
}

/** @param {Asked} question */
function matrixOf(question) {
  const { reading, kind, special, unit, layer, head } = question;
  const known = matrices.get([reading, kind, special, unit, layer, head].join());
  if (known) return known;
  const opened = openReading(reading);
  const rows = rowsOf(opened, special, unit);
  const { positions } = rows;
  const count = positions.length;
  const d = opened.header.model.head_size;
  const C = product(prepare(headVectors(opened, layer, head, rows), count, d, kind), count, d);
  /** @type {Kept} */
  const made = { C, positions, range: colourRange(plainValues(C, specialRows(opened, positions))) };
  keep(question, made);
  return made;
}

/**
 * Some of the cells off the diagonal of every thumbnail: enough for two percentiles.
 *
 * @param {Float32Array} cells
 * @param {boolean[]} special of the blocks
 */
function sample(cells, special) {
  const blocks = special.length;
  const aside = special.filter((is) => !is).length < 2 ? special.map(() => false) : special;
  const step = Math.max(1, Math.floor(cells.length / 200000));
  /** @type {number[]} */
  const some = [];
  for (let at = 0; at < cells.length; at += step) {
    const cell = at % (blocks * blocks);
    const [i, j] = [Math.floor(cell / blocks), cell % blocks];
    if (i !== j && !aside[i] && !aside[j]) some.push(cells[at]);
  }
  return Float32Array.from(some);
}

/**
 * A part of a reading: bytes from the server, or a block of base64 from a saved page.
 *
 * @param {string | ArrayBuffer} part
 */
function decoded(part) {
  if (typeof part !== "string") return new Uint8Array(part);
  const text = atob(part);
  const bytes = new Uint8Array(text.length);
  for (let c = 0; c < text.length; c++) bytes[c] = text.charCodeAt(c);
  return bytes;
}

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  if (pieces.length === 1) return pieces[0];
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

async function work() {
  const message = urgent.shift() ?? patient.shift();
  awake = message !== undefined;
  if (message === undefined) return;
  try {
    const answer = await answered(message);
    const buffers = Object.values(answer ?? {})
      .filter((value) => ArrayBuffer.isView(value))
      .map(({ buffer }) => buffer);
    const pictures = Object.values(answer ?? {}).filter((value) => value instanceof ImageBitmap);
    const given = [...new Set(buffers)].filter(passable);
    say({ id: message.id, answer }, [...given, ...pictures]);
  } catch (error) {
    say({ id: message.id, error: error instanceof Error ? error.message : String(error) });
  }
  setTimeout(work); // lets new questions in between two pieces of work
}

/**
 * @template {Ask} A
 * @param {import("../types.js").Question<A> & {ask: A}} message
 */
function answered(message) {
  return answers[message.ask](message);
}

/**
 * @param {FromWorker} message
 * @param {Transferable[]} give
 */
function say(message, give = []) {
  postMessage(message, give);
}

/**
 * Buffers of kept matrices stay here; all others go over without a copy.
 *
 * @param {ArrayBufferLike} buffer
 * @returns {buffer is ArrayBuffer}
 */
function passable(buffer) {
  return ![...matrices.values()].some(({ positions }) => positions.buffer === buffer);
}

onmessage = (/** @type {MessageEvent<ToWorker>} */ { data: message }) => {
  if (message.ask === "forget") {
    // Measures that nobody waits for any more.
    for (const { id } of patient.splice(0)) say({ id, answer: null });
    return;
  }
  if (message.ask === "part") {
    const before = parts.get(message.reading) ?? [];
    before.push(decoded(message.part));
    parts.set(message.reading, before);
    return;
  }
  (message.ask === "measure" ? patient : urgent).push(message);
  if (!awake) {
    awake = true;
    setTimeout(work);
  }
};
