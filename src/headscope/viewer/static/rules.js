// Which pairs are high: the four rules of the method, written as in Python, and their sliders.

/** @import { Rule, RuleName } from "headscope/types.js" */

/**
 * `low` and `high` are the ends of the slider, `first` where it begins.
 *
 * @typedef {{title: string, define: (number: number) => string, first: number, low: number,
 *   high: number, log: boolean, whole?: boolean}} Described
 * @type {Record<RuleName, Described>}
 */
export const RULES = {
  quantile: {
    title: "top share of the pairs",
    define: (q) => `the ${percentage(q)} most similar pairs of this head`,
    first: 0.01,
    low: 0.0005,
    high: 0.2,
    log: true,
  },
  peak: {
    title: "share of the peak",
    define: (f) => `pairs with at least ${f} × the largest similarity`,
    first: 0.3,
    low: 0.01,
    high: 1,
    log: false,
  },
  sigma: {
    title: "deviations above the mean",
    define: (k) => `pairs at least ${k} standard deviations above the mean`,
    first: 3,
    low: 0,
    high: 8,
    log: false,
  },
  nearest: {
    title: "nearest tokens",
    define: (k) => `pairs in which one token is among the ${k} most similar to the other`,
    first: 3,
    low: 1,
    high: 20,
    log: false,
    whole: true,
  },
};

export const STEPS = 200;

/** @param {number} q */
function percentage(q) {
  return `${Number((100 * q).toPrecision(3))} %`;
}

/**
 * "quantile(0.01)" → {name, number}; the default where it cannot be read.
 *
 * @param {string} text
 * @returns {Rule}
 */
export function parseRule(text) {
  const found = /^(\w+)\(([\d.e+-]+)\)$/i.exec(text);
  const number = found ? Number(found[2]) : NaN;
  const name = isRule(found?.[1]) ? found[1] : null;
  if (name === null || !Number.isFinite(number)) return { name: "quantile", number: 0.01 };
  return { name, number: RULES[name].whole ? Math.max(1, Math.round(number)) : number };
}

/**
 * @param {string | undefined} name
 * @returns {name is RuleName}
 */
export function isRule(name) {
  return name !== undefined && Object.hasOwn(RULES, name);
}

/** @param {Rule} rule */
export function ruleText({ name, number }) {
  return `${name}(${number})`;
}

/**
 * The number of a rule at a place of its slider, rounded to what a person would write.
 *
 * @param {RuleName} name
 * @param {number} step
 */
export function atStep(name, step) {
  const { low, high, log, whole } = RULES[name];
  const share = step / STEPS;
  const value = log ? low * (high / low) ** share : low + (high - low) * share;
  return whole ? Math.round(value) : Number(value.toPrecision(2));
}

/** @param {Rule} rule */
export function stepOf({ name, number }) {
  const { low, high, log } = RULES[name];
  const share = log ? Math.log(number / low) / Math.log(high / low) : (number - low) / (high - low);
  return Math.round(Math.min(1, Math.max(0, share)) * STEPS);
}
//# sourceURL=headscope/rules.js
