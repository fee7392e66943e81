// Export: SVG, PNG at print size, and the numbers as CSV; made in the page, sent nowhere.

import { cut, rounded } from "headscope/atlas.js";
import { kindColours, kindOf } from "headscope/card.js";
import { atlasFigure, matrixFigure, pngOf, segmentsFigure, textFigure } from "headscope/figure.js";
import { cssColour, isPale } from "headscope/colours.js";
import { h } from "headscope/dom.js";
import { contextOf } from "headscope/matrix.js";
import { apart, relation } from "headscope/words.js";

/** @import { Views } from "headscope/main.js" */
/** @import { Atlas } from "headscope/atlas.js" */
/** @import { Session } from "headscope/session.js" */
/** @import { Matrix, Opened, Pairs } from "headscope/types.js" */
/** @typedef {(string | number | boolean)[][]} Rows */

const PRINT_WIDTH = 2126; // pixels: 180 mm, two columns of a journal, at 300 dots an inch

/**
 * @param {string} name
 * @param {string} type
 * @param {BlobPart} content
 */
export function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/** @param {Rows} rows */
export function csvText(rows) {
  const cell = (/** @type {string | number | boolean} */ value) =>
    /[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/**
 * The view on screen as an SVG element.
 *
 * @param {Session} session
 * @param {Views} views
 */
export async function drawing(session, views) {
  const { state, reading } = session;
  const { view, reading: kind, rule, special, granularity } = state.values;
  if (view === "atlas" || !reading) return atlasDrawing(session, views.atlas);
  const caption = `${reading.model.name}, layer ${session.layerNumber(state.layer)}, head ${state.head}: ${kind} similarity, high pairs ${rule}, special tokens ${special.replace("_", " ")}`;
  if (view === "segments") {
    const { page, chart } = views.segments;
    const said = `${reading.model.name}: topics at granularity ${granularity}`;
    const bars = chart.querySelector("svg");
    if (!bars) throw new Error("The segments are not worked out yet.");
    return segmentsFigure(page, bars, await views.segments.picture("light"), said);
  }
  if (view === "text" && reading.header.place)
    throw new Error("The picture is no figure. The head view and the atlas are.");
  if (view === "text") return textFigure(views.text.page, caption);
  if (view === "compare") {
    const both = views.compare.sides.map(({ looked }) => looked).filter((side) => side !== null);
    const parts = both.map(async ({ data, reading: read, place }) => ({
      title: `layer ${session.layerNumber(place[0], read.model)}, head ${place[1]}`,
      kind,
      matrix: data,
      tokens: read.tokens,
      names: session.names(read),
      picture: await session.picture(read, ...place, kind, data, true, "light"),
    }));
    return matrixFigure(
      await Promise.all(parts),
      `${reading.model.name}: two heads, ${kind} similarity, high pairs ${rule}`,
    );
  }
  const { layer, head } = state;
  const shown = [...views.head.shown.values()]
    .map(({ matrix }) => matrix.drawn)
    .filter((drawn) => drawn !== null);
  const parts = shown.map(async (matrix) => ({
    title: matrix.kind,
    kind: matrix.kind,
    matrix,
    tokens: reading.tokens,
    names: session.names(reading),
    picture: await session.picture(
      reading,
      layer,
      head,
      matrix.kind,
      matrix,
      matrix.marked ?? false,
      "light",
    ),
  }));
  return matrixFigure(await Promise.all(parts), caption, views.head.viewport);
}

/**
 * The atlas as it is on screen: matrices or a measure, in the order chosen.
 *
 * @param {Session} session
 * @param {Atlas} atlas
 */
async function atlasDrawing(session, atlas) {
  const { reading: kind, order } = session.state.values;
  const { heads: columns, name: model } = session.model;
  const [chosen, within] = [atlas.chosen, atlas.filter(atlas.chosen)];
  const layout = { places: atlas.places, columns, sorted: order !== "layer" };
  const { cells, thumbnails } = atlas;
  const { study } = session;
  if (cells === "label" && study) {
    const colours = kindColours(study);
    const cell = (/** @type {number} */ at) => {
      const names = study.cards[at].labels.map(({ name }) => name);
      if (!within(at)) return { fill: "#eeeeee", lines: [] };
      const lines = [names[0], ...names.slice(1, 3)];
      return { fill: colours.get(kindOf(names[0])) ?? "#eeeeee", ink: "#111111", lines };
    };
    return atlasFigure({ ...layout, cell }, `${model}: labels of every head over ${study.corpus.name}`);
  }
  if (atlas.coloured || !thumbnails) {
    const { place, scale: colours } = atlas.measureScale(chosen, "light");
    const cell = (/** @type {number} */ at) => {
      const value = chosen.value(at);
      if (value === null || !within(at)) return { fill: "#eeeeee", lines: [] };
      const lines = [chosen.show(rounded(value)), ...(study?.cards[at].labels[0].name ?? "").split(/ (.*)/)];
      const ink = isPale(colours, place(value)) ? "#111111" : "#ffffff";
      return { fill: cssColour(colours, place(value)), ink, lines };
    };
    const times = chosen.lift ? ", × chance" : "";
    return atlasFigure({ ...layout, cell }, `${model}: ${chosen.title}${times} of every head`);
  }
  const sheet = await session.sheet(thumbnails, "light");
  const cell = (/** @type {number} */ at) => ({ canvas: cut(sheet, at, columns, thumbnails.blocks) });
  const range = cells === "head" ? "colours per head" : "shared colours";
  return atlasFigure({ ...layout, cell }, `${model}: ${kind} similarity of every head, ${range}`);
}

/**
 * @param {Session} session
 * @param {Views} views
 */
export async function exportSvg(session, views) {
  save(
    fileName(session, "svg"),
    "image/svg+xml",
    new XMLSerializer().serializeToString(await drawing(session, views)),
  );
}

/**
 * @param {Session} session
 * @param {Views} views
 */
export async function exportPng(session, views) {
  const figure = await drawing(session, views);
  const [width, height] = ["width", "height"].map((side) => Number(figure.getAttribute(side)));
  const url = URL.createObjectURL(
    new Blob([new XMLSerializer().serializeToString(figure)], { type: "image/svg+xml" }),
  );
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PRINT_WIDTH;
  canvas.height = Math.round((PRINT_WIDTH * height) / width);
  contextOf(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  save(fileName(session, "png"), "image/png", await pngOf(canvas));
}

/**
 * The measures of all heads from the atlas, else the high pairs of the chosen head.
 *
 * @param {Session} session
 * @param {Views} views
 */
export async function exportCsv(session, views) {
  const { view } = session.state.values;
  if (view === "atlas" || view === "segments" || !session.reading) {
    const rows = view === "segments" && session.reading ? views.segments.csv() : views.atlas.csv();
    save(fileName(session, "csv"), "text/csv", csvText(rows));
    return;
  }
  const { state, reading } = session;
  const { tokens } = reading;
  const [matrix, found] = [
    await session.matrix(reading, state.layer, state.head, state.values.reading),
    await session.pairs(reading, state.layer, state.head, 1e6),
  ];
  const rows = found.pairs.map(([i, j, value]) => {
    const [a, b] = [matrix.positions[i], matrix.positions[j]];
    const same = relation(tokens, a, b);
    /** @type {<T>(of: (position: number) => T) => [T, T]} */
    const ends = (of) => [of(a), of(b)];
    return [
      value,
      a,
      b,
      ...ends((p) => tokens.word[p]),
      ...ends((p) => tokens.piece[p]),
      ...ends((p) => (tokens.place[p] < 0 ? -1 : [...tokens.word[p].slice(0, tokens.place[p])].length)),
      b - a,
      same.includes("same sentence"),
      same.includes("same word"),
      tokens.special[a] || tokens.special[b],
      ...ends((p) => tokens.unknown[p]),
    ];
  });
  if (reading.header.place) {
    save(fileName(session, "csv"), "text/csv", csvText(placedRows(reading, matrix, found)));
    return;
  }
  const head = [
    "similarity",
    "first",
    "second",
    "first_word",
    "second_word",
    "first_piece",
    "second_piece",
    "first_place",
    "second_place",
    "distance",
    "same_sentence",
    "same_word",
    "special",
    "first_unknown",
    "second_unknown",
  ];
  save(fileName(session, "csv"), "text/csv", csvText([head, ...rows]));
}

/**
 * The high pairs of patches, frames or labelled positions.
 *
 * @param {Opened} reading
 * @param {Matrix} matrix
 * @param {Pairs} found
 * @returns {Rows}
 */
function placedRows({ tokens, header }, { positions }, found) {
  const far = header.place?.kind === "inputs" ? [] : ["distance"];
  const head = ["similarity", "first", "second", "first_label", "second_label", ...far, "special"];
  const rows = found.pairs.map(([i, j, value]) => {
    const [a, b] = [positions[i], positions[j]];
    const distance = far.length ? [apart(tokens, a, b)] : [];
    return [value, a, b, tokens.word[a], tokens.word[b], ...distance, tokens.special[a] || tokens.special[b]];
  });
  return [head, ...rows];
}

/**
 * @param {Session} session
 * @param {string} ending
 */
function fileName(session, ending) {
  const view = session.reading ? session.state.values.view : "atlas";
  const head =
    view === "atlas" || view === "segments"
      ? ""
      : `-layer${session.layerNumber(session.state.layer)}-head${session.state.head}`;
  return `headscope-${view}${head}.${ending}`;
}
//# sourceURL=headscope/exporting.js
