// The viewer: a bar, five views of one reading, and what holds them together.

import { Atlas } from "headscope/atlas.js";
import { scaleOf } from "headscope/colours.js";
import { Compare } from "headscope/compare.js";
import { choice, h, messageOf, waiting } from "headscope/dom.js";
import { Entry } from "headscope/entry.js";
import { exportCsv, exportPng, exportSvg } from "headscope/exporting.js";
import { Find } from "headscope/find.js";
import { Head } from "headscope/head.js";
import { Help, listenToKeys } from "headscope/keys.js";
import { Reader } from "headscope/reader.js";
import { Scene } from "headscope/scene.js";
import { Segments } from "headscope/segments.js";
import { Session } from "headscope/session.js";
import { openText, placeOf } from "headscope/texts.js";
import { onTheme, switchTheme, theme } from "headscope/theme.js";
import { aboutUnknown, READINGS } from "headscope/words.js";

/** @import { Changed, Choice, Kind, Place, Range, Reading, Study, View } from "headscope/types.js" */

/** @typedef {{atlas: Atlas, head: Head, text: Reader, scene: Scene, segments: Segments, compare: Compare}} Views */
/** @typedef {{entry: Entry, help: Help, views: Views, fail: (error: unknown) => void}} Parts */

/** @type {Choice<View>[]} */
const VIEWS = [
  ["atlas", "Atlas"],
  ["head", "Head"],
  ["text", "Text"],
  ["segments", "Segments"],
  ["compare", "Compare"],
];

/** @type {Record<Place["kind"], string>} */
const SCENES = { image: "Picture", sound: "Sound", inputs: "Positions" };

/** @type {Choice<Reading>[]} */
const KINDS = [
  ["raw", ...titled("raw")],
  ["cosine", ...titled("cosine")],
  ["centred", ...titled("centred")],
];

/** @param {Reading} kind */
function titled(kind) {
  const [name, definition] = READINGS[kind];
  return /** @type {const} */ ([name, definition]);
}

/** @type {Record<string, (session: Session, views: Views) => Promise<void>>} */
const EXPORTS = { SVG: exportSvg, PNG: exportPng, CSV: exportCsv };

/**
 * The bar above every view.
 *
 * @param {Session} session
 * @param {Parts} parts
 */
function bar(session, { entry, help, views, fail }) {
  const { state } = session;
  const tabs = choice("View", VIEWS, state.values.view, (view) => state.set({ view }));
  const readings = choice("Reading", KINDS, state.values.reading, (reading) => state.set({ reading }));
  /** @type {HTMLInputElement} */
  const special = h("input", {
    type: "checkbox",
    onchange: () => state.set({ special: special.checked ? "kept" : "left_out" }),
  });
  /** @type {HTMLInputElement} */
  const words = h("input", {
    type: "checkbox",
    onchange: () => state.set({ unit: words.checked ? "word" : "token" }),
  });
  const about = h("span", { class: "about" });
  const newText = session.source.canRead
    ? h("button", { type: "button", onclick: () => entry.open() }, "New text …")
    : null;
  /** @type {HTMLSelectElement} */
  const exports = h(
    "select",
    {
      "aria-label": "Export",
      onchange: () => {
        const does = EXPORTS[exports.value];
        exports.value = "";
        does(session, views).catch(fail);
      },
    },
    h("option", { value: "" }, "Export"),
    Object.keys(EXPORTS).map((name) => h("option", { value: name }, name)),
  );
  session.texts.fail = fail;
  const find = new Find(session);
  const withSpecial = h(
    "label",
    { title: "Keep special tokens: [CLS], [SEP], <s> … (s)" },
    special,
    " special",
  );
  const byWord = h(
    "label",
    { title: "A row for each word, with the mean vector of its pieces (w)" },
    words,
    " words",
  );
  const element = h(
    "header",
    {},
    h("span", { class: "name" }, "headscope"),
    tabs,
    about,
    session.texts.element,
    newText,
    h("span", { class: "space" }),
    readings,
    withSpecial,
    byWord,
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
    session.texts.update();
    const { reading } = session;
    tabs.choose(reading ? state.values.view : "atlas");
    readings.choose(state.values.reading);
    special.checked = state.values.special === "kept";
    words.checked = state.values.unit === "word";
    if (newText) newText.hidden = Boolean(session.given?.missing);
    const ofText = [tabs, readings, withSpecial, byWord, find.element];
    for (const part of ofText) part.hidden = !reading;
    exports.hidden = !session.ready;
    if (!reading && session.given) about.textContent = aboutStudy(session.given);
    const place = reading?.header.place;
    // What only a text has is not offered: words, and segments.
    tabs.offer((view) => !place || view !== "segments");
    tabs.name("text", place ? SCENES[place.kind] : "Text");
    if (place) byWord.hidden = true;
    if (reading) {
      const { model, tokens } = reading;
      const sentences = new Set(tokens.sentence.filter((number) => number >= 0)).size;
      const { windows } = reading.header;
      const parts = windows > 1 ? `, ${windows} windows` : "";
      const what = place ? "positions" : "tokens";
      about.textContent = `${model.name} · ${tokens.id.length.toLocaleString("en")} ${what}`;
      const study = session.study ? ` ${whichText(session)} Study: ${aboutStudy(session.study)}.` : "";
      about.title = place
        ? ""
        : `${about.textContent}, ${sentences.toLocaleString("en")} sentences${parts}.${study}`;
      if (windows > 1)
        about.title += ` The text is longer than the ${model.window} tokens that the model reads at once: it was read in ${windows} windows, and attention stays within one.`;
    }
  };
  update();
  return { element, update, find };
}

/**
 * Whether the text that is open is of the corpus that the study beside it is about.
 *
 * @param {Session} session
 */
function whichText(session) {
  const text = openText(session);
  return text
    ? `Text ${text.number} of those kept of the corpus: ${placeOf(text)}.`
    : "This text is not of the corpus that was studied.";
}

/** @param {Study} study */
function aboutStudy({ model, corpus }) {
  const [documents, tokens] = [corpus.documents, corpus.tokens].map((count) => count.toLocaleString("en"));
  return `${model.name} on ${corpus.name} · ${documents} documents, ${tokens} tokens`;
}

/**
 * Which view is on screen: a picture has one of its own, where a text has the text.
 *
 * @param {Session} session
 * @returns {keyof Views}
 */
function shownView({ reading, state }) {
  if (!reading) return "atlas";
  const { view } = state.values;
  if (!reading.header.place) return view;
  return view === "text" || view === "segments" ? "scene" : view;
}

/** @param {HTMLElement} root */
export async function start(root) {
  const session = new Session();
  const { state } = session;
  const [entry, help] = [new Entry(session), new Help()];
  /** @type {Views} */
  const views = {
    atlas: new Atlas(session),
    head: new Head(session),
    text: new Reader(session),
    scene: new Scene(session),
    segments: new Segments(session),
    compare: new Compare(session, (place) => entry.open(place)),
  };
  const notice = h("p", { class: "notice", role: "status", hidden: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const fail = (/** @type {unknown} */ error) => {
    problem.textContent = messageOf(error);
    problem.hidden = false;
  };
  const top = bar(session, { entry, help, views, fail });
  const stage = h("main", {}, h("div", { class: "waiting" }, waiting("Reading")));
  root.replaceChildren(top.element, notice, problem, stage, entry.element, help.element);

  let showing = 0; // views that are being brought up to date
  const show = async (/** @type {Changed} */ changed) => {
    top.update();
    if (!session.ready) return;
    const unknown = session.reading ? aboutUnknown(session.reading.tokens) : { text: "", much: false };
    notice.textContent = [session.given?.missing, unknown.much ? unknown.text : ""].filter(Boolean).join(" ");
    notice.hidden = notice.textContent === "";
    problem.hidden = true;
    showing++;
    const view = views[shownView(session)];
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
  const console = {
    session,
    views,
    idle: () => showing === 0 && session.compute.idle,
    colours: (/** @type {Kind} */ kind, /** @type {Range} */ range) => scaleOf(kind, range, theme()),
  };
  Object.assign(globalThis, { headscope: console });
  try {
    const said = await session.source.session();
    session.given = said.study;
    if (!said.readable) {
      state.set(session.within(session.model));
      await show(null);
    } else await (said.started ? entry.start(said.started) : session.open());
  } catch (error) {
    stage.replaceChildren();
    fail(error);
  }
}
//# sourceURL=headscope/main.js
