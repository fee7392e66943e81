// What heads can be put in order, left out and coloured by: measures of this text, worked out here,
// and those of a study, each with the chance level and the interval that the study gives it.

import { number, percent } from "headscope/dom.js";

/** @import { Estimate, HeadMeasures, Measure, Study, TextMeasure } from "headscope/types.js" */

const share = (/** @type {number} */ value) => percent(value);

/** @type {Record<TextMeasure["shown"], (value: number) => string>} */
const SHOWN = { percent: share, number, times: (value) => `${value.toFixed(2)} ×` };

export const OF_TEXT = "this text";

/**
 * Every measure by its name: of a study, and of a text, of which the heads known so far are given.
 *
 * @param {Study | null} study
 * @param {TextMeasure[]} [defined]
 * @param {Map<number, HeadMeasures> | null} [ofText]
 * @returns {Map<string, Measure>}
 */
export function allMeasures(study, defined = [], ofText = null) {
  const found = new Map(study ? studied(study) : []);
  for (const { name, title, definition, shown } of defined) {
    const of = (/** @type {number} */ at) => ({ value: ofText?.get(at)?.[name] ?? null });
    found.set(name, { group: OF_TEXT, title, definition, show: SHOWN[shown], of, hasChance: false });
  }
  return found;
}

/**
 * @param {Study} study
 * @returns {Generator<[string, Measure]>}
 */
function* studied({ measures }) {
  for (const { measure, name, definition, unit, by_chance, shown, told: first, ...numbers } of measures) {
    const parts = Object.entries(numbers);
    yield [
      `study.${name}`,
      {
        group: `the study: ${measure}`,
        title: name.replaceAll("_", " "),
        definition,
        unit,
        byChance: by_chance,
        show: SHOWN[shown],
        of: (at) => Object.fromEntries(parts.map(([part, values]) => [part, values[at]])),
        hasChance: Boolean(numbers.lift),
        first,
      },
    ];
  }
}

/**
 * "35 % [31 %, 40 %], by chance 2 %"
 *
 * @param {Pick<Measure, "show">} measure
 * @param {Estimate} estimate
 */
export function told({ show }, { value, low, high, chance }) {
  if (!isNumber(value)) return "–";
  const interval = isNumber(low) && isNumber(high) ? ` [${show(low)}, ${show(high)}]` : "";
  return `${show(value)}${interval}${isNumber(chance) ? `, by chance ${show(chance)}` : ""}`;
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
export function isNumber(value) {
  return typeof value === "number";
}
//# sourceURL=headscope/measures.js
