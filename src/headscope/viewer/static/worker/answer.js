"use strict";
// The worker's door: questions about readings come in, answers go out. What a person waits for
// comes first; the measures of all heads are worked out one head at a time in between.

const readings = new Map();
const parts = new Map(); // of readings on their way: bytes
const matrices = new Map(); // the last few, since a slider asks about the same one again
const KEPT_MATRICES = 6;
let thumbnails = null; // the last that were asked for
const urgent = [];
const patient = [];
let awake = false;

const answers = {
  open({ reading }) {
    const bytes = joined(parts.get(reading));
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
    const opened = readings.get(reading);
    const { layers, heads, head_size: d } = opened.header.model;
    const rows = rowsOf(opened, special, unit);
    const { positions } = rows;
    const blocks = Math.min(most, positions.length);
    const cells = new Float32Array(layers * heads * blocks * blocks);
    const ranges = new Float32Array(layers * heads * 2);
    for (let at = 0; at < layers * heads; at++) {
      const z = headVectors(opened, Math.floor(at / heads) + 1, (at % heads) + 1, rows);
      const block = blockMeans(prepare(z, positions.length, d, kind), positions.length, d, blocks);
      cells.set(block, at * blocks * blocks);
      ranges.set(colourRange(pairValues(block, blocks)), at * 2);
    }
    thumbnails = { cells, blocks };
    return { blocks, tokens: positions.length, ranges, shared: colourRange(sample(cells, blocks)) };
  },

  async sheet({ reading, limits, colours }) {
    const { layers, heads } = readings.get(reading).header.model;
    return { picture: await thumbnailSheet(thumbnails, layers, heads, limits, colours) };
  },

  matrix(question) {
    const { C, positions, range } = matrixOf(question);
    return { values: C.slice(), positions, size: positions.length, range };
  },

  async picture({ rule, scale, ...question }) {
    const kept = matrixOf(question);
    const reach = rule === null ? null : reachOf(kept, rule);
    return { picture: await matrixPicture(kept.C, kept.positions.length, scale, reach) };
  },

  pairs({ rule, most, ...question }) {
    const kept = matrixOf(question);
    const { C, positions } = kept;
    const tokens = readings.get(question.reading).header.tokens;
    const reach = reachOf(kept, rule);
    const counts = countPairs(C, positions, tokens, reach);
    return { ...counts, reach: reach.slice(), pairs: listPairs(C, positions, reach, most) };
  },

  agreement({ rule, questions }) {
    const [a, b] = questions.map((question) => {
      const kept = matrixOf(question);
      return { C: kept.C, reach: reachOf(kept, rule), count: kept.positions.length };
    });
    const isHigh = ({ C, reach, count }, i, j) =>
      C[i * count + j] >= reach[i] || C[i * count + j] >= reach[j];
    let [both, either] = [0, 0];
    for (let i = 0; i < a.count; i++) {
      for (let j = i + 1; j < a.count; j++) {
        const [first, second] = [isHigh(a, i, j), isHigh(b, i, j)];
        if (first && second) both++;
        if (first || second) either++;
      }
    }
    return { both, either };
  },

  attention({ buffer, ...question }) {
    const { reading, special, unit } = question;
    const opened = readings.get(reading);
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
    const range = [0, colourRange(values.slice())[1]];
    keep(question, { C: values, positions, range });
    return { values: values.slice(), positions, size: count, range };
  },

  async paint({ values, size, scale }) {
    return { picture: await matrixPicture(values, size, scale, null) };
  },

  measure({ reading, kind, special, unit, rule, layer, head }) {
    const opened = readings.get(reading);
    const rows = rowsOf(opened, special, unit);
    const d = opened.header.model.head_size;
    const z = headVectors(opened, layer, head, rows);
    return headMeasures(z, rows.positions, d, kind, opened.header.tokens, rule);
  },
};

/** What has a row of its own: tokens, or words with the number of their pieces. */
function rowsOf(reading, special, unit) {
  const { special: isSpecial, word_number: word } = reading.header.tokens;
  const [positions, counts] = [[], []];
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

/** What one row attends to another: of words the mean over its pieces of what theirs get together. */
function attentionOf(halves, size, i, rows, j, columns) {
  let sum = 0;
  for (let a = i; a < i + rows; a++) for (let b = j; b < j + columns; b++) sum += HALF[halves[a * size + b]];
  return sum / rows;
}

function keep({ reading, kind, special, unit, layer, head }, matrix) {
  if (matrices.size >= KEPT_MATRICES) matrices.delete(matrices.keys().next().value);
  matrices.set([reading, kind, special, unit, layer, head].join(), matrix);
}

/** The thresholds of a rule for a matrix, worked out once. */
function reachOf(kept, rule) {
  const name = `${rule.name}(${rule.number})`;
  if (kept.rule !== name)
    Object.assign(kept, { rule: name, reach: thresholds(kept.C, kept.positions.length, rule) });
  return kept.reach;
}

function matrixOf(question) {
  const { reading, kind, special, unit, layer, head } = question;
  const key = [reading, kind, special, unit, layer, head].join();
  if (!matrices.has(key)) {
    const opened = readings.get(reading);
    const rows = rowsOf(opened, special, unit);
    const { positions } = rows;
    const count = positions.length;
    const d = opened.header.model.head_size;
    const C = product(prepare(headVectors(opened, layer, head, rows), count, d, kind), count, d);
    keep(question, { C, positions, range: colourRange(pairValues(C, count)) });
  }
  return matrices.get(key);
}

/** Some of the cells off the diagonal of every thumbnail: enough for two percentiles. */
function sample(cells, blocks) {
  const step = Math.max(1, Math.floor(cells.length / 200000));
  const some = [];
  for (let at = 0; at < cells.length; at += step) {
    const cell = at % (blocks * blocks);
    if (Math.floor(cell / blocks) !== cell % blocks) some.push(cells[at]);
  }
  return Float32Array.from(some);
}

/** A part of a reading: bytes from the server, or a block of base64 from a saved page. */
function decoded(part) {
  if (typeof part !== "string") return new Uint8Array(part);
  const text = atob(part);
  const bytes = new Uint8Array(text.length);
  for (let c = 0; c < text.length; c++) bytes[c] = text.charCodeAt(c);
  return bytes;
}

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
  if (!awake) return;
  try {
    const answer = await answers[message.ask](message);
    const buffers = Object.values(answer)
      .filter(ArrayBuffer.isView)
      .map((array) => array.buffer);
    const pictures = Object.values(answer).filter((value) => value instanceof ImageBitmap);
    postMessage({ id: message.id, answer }, [...new Set(buffers)].filter(passable).concat(pictures));
  } catch (error) {
    postMessage({ id: message.id, error: String(error?.message ?? error) });
  }
  setTimeout(work); // lets new questions in between two pieces of work
}

/** Buffers of kept matrices stay here; all others go over without a copy. */
function passable(buffer) {
  return ![...matrices.values()].some(({ positions }) => positions.buffer === buffer);
}

onmessage = ({ data: message }) => {
  if (message.ask === "forget") {
    // Measures that nobody waits for any more.
    for (const { id } of patient.splice(0)) postMessage({ id, answer: null });
    return;
  }
  if (message.ask === "part") {
    if (!parts.has(message.reading)) parts.set(message.reading, []);
    parts.get(message.reading).push(decoded(message.part));
    return;
  }
  (message.ask === "measure" ? patient : urgent).push(message);
  if (!awake) {
    awake = true;
    setTimeout(work);
  }
};
