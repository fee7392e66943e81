// The viewer: a bar, five views of one reading, and what holds them together.

import { Atlas } from "headscope/atlas.js";
import { scaleOf } from "headscope/colours.js";
import { Compare } from "headscope/compare.js";
import { choice, h } from "headscope/dom.js";
import { Entry } from "headscope/entry.js";
import { exportCsv, exportPng, exportSvg } from "headscope/exporting.js";
import { Find } from "headscope/find.js";
import { Head } from "headscope/head.js";
import { Help, listenToKeys } from "headscope/keys.js";
import { Reader } from "headscope/reader.js";
import { Segments } from "headscope/segments.js";
import { Session } from "headscope/session.js";
import { onTheme, switchTheme, theme } from "headscope/theme.js";
import { READINGS } from "headscope/words.js";

const VIEWS = [
  ["atlas", "Atlas"],
  ["head", "Head"],
  ["text", "Text"],
  ["segments", "Segments"],
  ["compare", "Compare"],
];

function bar(session, { entry, help, views, fail }) {
  const { state } = session;
  const tabs = choice("View", VIEWS, state.values.view, (view) => state.set({ view }));
  const readings = choice(
    "Reading",
    ["raw", "cosine", "centred"].map((kind) => [kind, ...READINGS[kind]]),
    state.values.reading,
    (reading) => state.set({ reading }),
  );
  const special = h("input", {
    type: "checkbox",
    onchange: () => state.set({ special: special.checked ? "kept" : "left_out" }),
  });
  const words = h("input", {
    type: "checkbox",
    onchange: () => state.set({ unit: words.checked ? "word" : "token" }),
  });
  const about = h("span", { class: "about" });
  const newText = session.source.canRead
    ? h("button", { type: "button", onclick: () => entry.open() }, "New text …")
    : null;
  const exports = h(
    "select",
    {
      "aria-label": "Export",
      onchange: () => {
        const does = { SVG: exportSvg, PNG: exportPng, CSV: exportCsv }[exports.value];
        exports.value = "";
        does(session, views).catch(fail);
      },
    },
    h("option", { value: "" }, "Export"),
    ["SVG", "PNG", "CSV"].map((name) => h("option", { value: name }, name)),
  );
  const find = new Find(session);
  const element = h(
    "header",
    {},
    h("span", { class: "name" }, "headscope"),
    tabs,
    about,
    newText,
    h("span", { class: "space" }),
    readings,
    h("label", { title: "Keep special tokens: [CLS], [SEP], <s> … (s)" }, special, " special"),
    h("label", { title: "A row for each word, with the mean vector of its pieces (w)" }, words, " words"),
    find.element,
    exports,
    h(
      "button",
      {
        type: "button",
        class: "icon",
        "aria-label": "Light or dark",
        title: "Light or dark (d)",
        onclick: switchTheme,
      },
      "◐",
    ),
    h(
      "button",
      {
        type: "button",
        class: "icon",
        "aria-label": "Keys and help",
        title: "Keys and help (?)",
        onclick: () => help.open(),
      },
      "?",
    ),
  );
  const update = () => {
    const { reading } = session;
    tabs.choose(reading ? state.values.view : "atlas");
    readings.choose(state.values.reading);
    special.checked = state.values.special === "kept";
    words.checked = state.values.unit === "word";
    if (newText) newText.hidden = Boolean(session.given?.missing);
    const ofText = [tabs, readings, special.parentNode, words.parentNode, find.element];
    for (const part of ofText) part.hidden = !reading;
    exports.hidden = !session.model;
    if (!reading && session.given) about.textContent = aboutStudy(session.given);
    if (reading) {
      const { model, tokens } = reading;
      const sentences = new Set(tokens.sentence.filter((number) => number >= 0)).size;
      const { windows } = reading.header;
      const parts = windows > 1 ? `, ${windows} windows` : "";
      about.textContent = `${model.name} · ${tokens.id.length.toLocaleString("en")} tokens`;
      const study = session.study ? ` Study: ${aboutStudy(session.study)}.` : "";
      about.title = `${about.textContent}, ${sentences.toLocaleString("en")} sentences${parts}.${study}`;
      if (windows > 1)
        about.title += ` The text is longer than the ${model.window} tokens that the model reads at once: it was read in ${windows} windows, and attention stays within one.`;
    }
  };
  update();
  return { element, update, find };
}

function aboutStudy({ model, corpus }) {
  const [documents, tokens] = [corpus.documents, corpus.tokens].map((count) => count.toLocaleString("en"));
  return `${model.name} on ${corpus.name} · ${documents} documents, ${tokens} tokens`;
}

export async function start(root) {
  const session = new Session();
  const { state } = session;
  const [entry, help] = [new Entry(session), new Help()];
  const views = {
    atlas: new Atlas(session),
    head: new Head(session),
    text: new Reader(session),
    segments: new Segments(session),
    compare: new Compare(session, (place) => entry.open(place)),
  };
  const notice = h("p", { class: "notice", role: "status", hidden: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const fail = (error) => {
    problem.textContent = error.message;
    problem.hidden = false;
  };
  const top = bar(session, { entry, help, views, fail });
  const stage = h("main", {}, h("p", { class: "waiting" }, "Reading …"));
  root.replaceChildren(top.element, notice, problem, stage, entry.element, help.element);

  let showing = 0; // views that are being brought up to date
  const show = async (changed) => {
    top.update();
    if (!session.model) return;
    problem.hidden = true;
    showing++;
    const view = views[session.reading ? state.values.view : "atlas"];
    const entered = stage.firstChild !== view.element;
    if (entered) stage.replaceChildren(view.element);
    await view.update(entered ? null : changed).catch(fail);
    showing--;
  };
  state.listeners.push((changed) => show(changed));
  session.listeners.push(() => show(null));
  onTheme(() => show(null));
  listenToKeys(session, {
    theme: switchTheme,
    help: () => help.open(),
    find: () => {
      top.find.field.focus();
      top.find.field.select();
    },
    next: (down, right) => (stage.firstChild === views.atlas.element ? views.atlas.next(down, right) : null),
    letGo: () => state.set({ token: null }),
    zoom: (factor) => {
      if (state.values.view === "head") views.head.zoom(factor);
    },
  });
  // For the browser's console and for tests: what is on screen, and the colours it is shown in.
  globalThis.headscope = {
    session,
    views,
    idle: () => showing === 0 && session.compute.idle,
    colours: (kind, range) => scaleOf(kind, range, theme()),
  };
  try {
    const said = await session.source.session();
    session.given = said.study;
    if (!said.readable) {
      state.set(session.within(session.model));
      await show(null);
      notice.textContent = said.study.missing;
      notice.hidden = false;
    } else await (session.source.canRead ? entry.start(said) : session.open());
  } catch (error) {
    stage.replaceChildren();
    fail(error);
  }
}
//# sourceURL=headscope/main.js
