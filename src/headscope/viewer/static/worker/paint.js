"use strict";
// Matrices as pictures. Four million cells take a tenth of a second: too long for the page itself.

const FAINT = 56; // of 255: how much of a pair that is not high remains visible

/** @typedef {import("../types.js").Colours} Colours */

/**
 * 256 colours (r, g, b each) as words of pixels, with the given opacity.
 *
 * @param {Uint8Array} colours
 * @param {number} opacity
 */
function pixelWords(colours, opacity) {
  const words = new Uint32Array(256);
  const bytes = new Uint8Array(words.buffer);
  for (let k = 0; k < 256; k++)
    bytes.set([colours[3 * k], colours[3 * k + 1], colours[3 * k + 2], opacity], 4 * k);
  return words;
}

/**
 * Colour some values into pixels, from the first colour at `from` to the last at `to`.
 *
 * @param {Float32Array} values
 * @param {number} start
 * @param {number} count
 * @param {Uint32Array} pixels
 * @param {number} at
 * @param {Uint32Array} words
 * @param {number} from
 * @param {number} to
 */
function colourRow(values, start, count, pixels, at, words, from, to) {
  const factor = 255 / (to - from);
  for (let k = 0; k < count; k++) {
    const step = (values[start + k] - from) * factor + 0.5;
    pixels[at + k] = words[step >= 255 ? 255 : step > 0 ? step | 0 : 0];
  }
}

/**
 * A matrix as a picture of a pixel a cell. C is symmetric, so half of it is enough to see all of
 * it: given which pairs are high, all others recede above the diagonal.
 *
 * @param {Float32Array} values
 * @param {number} size
 * @param {Colours} scale
 * @param {((i: number, j: number) => boolean) | null} isHigh
 */
function matrixPicture(values, size, { from, to, colours }, isHigh) {
  const image = new ImageData(size, size);
  const pixels = new Uint32Array(image.data.buffer);
  const [full, faint] = [pixelWords(colours, 255), pixelWords(colours, FAINT)];
  for (let i = 0; i < size; i++) {
    const row = i * size;
    if (isHigh === null) {
      colourRow(values, row, size, pixels, row, full, from, to);
      continue;
    }
    colourRow(values, row, i + 1, pixels, row, full, from, to);
    colourRow(values, row + i + 1, size - i - 1, pixels, row + i + 1, faint, from, to);
    for (let j = i + 1; j < size; j++) {
      if (isHigh(i, j)) colourRow(values, row + j, 1, pixels, row + j, full, from, to);
    }
  }
  return createImageBitmap(image);
}

/**
 * All thumbnails on one sheet, layers down and heads across, each with limits of its own.
 *
 * @param {{cells: Float32Array, blocks: number}} thumbnails
 * @param {number} layers
 * @param {number} heads
 * @param {number[]} limits
 * @param {Uint8Array} colours
 */
function thumbnailSheet({ cells, blocks }, layers, heads, limits, colours) {
  const image = new ImageData(heads * blocks, layers * blocks);
  const pixels = new Uint32Array(image.data.buffer);
  const words = pixelWords(colours, 255);
  for (let at = 0; at < layers * heads; at++) {
    const [top, left] = [Math.floor(at / heads) * blocks, (at % heads) * blocks];
    for (let i = 0; i < blocks; i++) {
      const place = (top + i) * heads * blocks + left;
      colourRow(
        cells,
        (at * blocks + i) * blocks,
        blocks,
        pixels,
        place,
        words,
        limits[2 * at],
        limits[2 * at + 1],
      );
    }
  }
  return createImageBitmap(image);
}
