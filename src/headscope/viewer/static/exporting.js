// Export: SVG, PNG at print size, and the numbers as CSV; made in the page, sent nowhere.

import { cut, rounded } from "headscope/atlas.js";
import { atlasFigure, matrixFigure, segmentsFigure, textFigure } from "headscope/figure.js";
import { cssColour, isPale } from "headscope/colours.js";
import { h } from "headscope/dom.js";
import { relation } from "headscope/words.js";

const PRINT_WIDTH = 2126; // pixels: 180 mm, two columns of a journal, at 300 dots an inch

export function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

export function csvText(rows) {
  const cell = (value) =>
    /[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** The view on screen as an SVG element. */
export async function drawing(session, views) {
  const { state, reading } = session;
  const { view, reading: kind, rule, special, granularity } = state.values;
  if (view === "atlas" || !reading) return atlasDrawing(session, views.atlas);
  const caption = `${reading.model.name}, layer ${state.layer}, head ${state.head}: ${kind} similarity, high pairs ${rule}, special tokens ${special.replace("_", " ")}`;
  if (view === "segments") {
    const { page, chart } = views.segments;
    const said = `${reading.model.name}: topics at granularity ${granularity}`;
    return segmentsFigure(page, chart.firstChild, await views.segments.picture("light"), said);
  }
  if (view === "text") return textFigure(views.text.page, caption);
  if (view === "compare") {
    const parts = views.compare.sides.map(async ({ data, reading: read, place }) => ({
      title: `layer ${place[0]}, head ${place[1]}`,
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
  const parts = [...views.head.shown]
    .filter(([, { matrix }]) => matrix.values)
    .map(async ([each, { matrix }]) => ({
      title: each,
      kind: each,
      matrix,
      tokens: reading.tokens,
      names: session.names(reading),
      picture: await session.picture(reading, state.layer, state.head, each, matrix, matrix.marked, "light"),
    }));
  return matrixFigure(await Promise.all(parts), caption, views.head.viewport);
}

/** The atlas as it is on screen: matrices or a measure, in the order chosen. */
async function atlasDrawing(session, atlas) {
  const { reading: kind, cells, order } = session.state.values;
  const { heads: columns, name: model } = session.model;
  const [chosen, within] = [atlas.chosen, atlas.filter(atlas.chosen)];
  const layout = { places: atlas.places, columns, sorted: order !== "layer" };
  if (atlas.coloured) {
    const { place, scale: colours } = atlas.measureScale(chosen, "light");
    const cell = (at) => {
      const value = chosen.value(at);
      if (value === null || !within(at)) return { fill: "#eeeeee", lines: [] };
      const lines = [chosen.show(rounded(value)), ...(session.study?.cards[at].label ?? "").split(/ (.*)/)];
      const ink = isPale(colours, place(value)) ? "#111111" : "#ffffff";
      return { fill: cssColour(colours, place(value)), ink, lines };
    };
    const times = chosen.lift ? ", × chance" : "";
    return atlasFigure({ ...layout, cell }, `${model}: ${chosen.title}${times} of every head`);
  }
  const sheet = await session.sheet(atlas.thumbnails, "light");
  const cell = (at) => ({ canvas: cut(sheet, at, columns, atlas.thumbnails.blocks) });
  const range = cells === "head" ? "colours per head" : "shared colours";
  return atlasFigure({ ...layout, cell }, `${model}: ${kind} similarity of every head, ${range}`);
}

export async function exportSvg(session, views) {
  save(
    name(session, "svg"),
    "image/svg+xml",
    new XMLSerializer().serializeToString(await drawing(session, views)),
  );
}

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
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  save(name(session, "png"), "image/png", blob);
}

/** The measures of all heads from the atlas, else the high pairs of the chosen head. */
export async function exportCsv(session, views) {
  const { view } = session.state.values;
  if (view === "atlas" || view === "segments" || !session.reading) {
    const rows = (session.reading ? views[view] : views.atlas).csv();
    save(name(session, "csv"), "text/csv", csvText(rows));
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
    return [
      value,
      a,
      b,
      tokens.word[a],
      tokens.word[b],
      b - a,
      same.includes("same sentence"),
      same.includes("same word"),
      tokens.special[a] || tokens.special[b],
    ];
  });
  const head = [
    "similarity",
    "first",
    "second",
    "first_word",
    "second_word",
    "distance",
    "same_sentence",
    "same_word",
    "special",
  ];
  save(name(session, "csv"), "text/csv", csvText([head, ...rows]));
}

function name(session, ending) {
  const view = session.reading ? session.state.values.view : "atlas";
  const head =
    view === "atlas" || view === "segments" ? "" : `-layer${session.state.layer}-head${session.state.head}`;
  return `headscope-${view}${head}.${ending}`;
}
//# sourceURL=headscope/exporting.js
