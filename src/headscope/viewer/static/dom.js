// Elements made from values. Text only ever enters the page as text: nothing here parses HTML.

/** @import { Choice } from "headscope/types.js" */

const LETTERS = new Intl.Segmenter();
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {string | number | boolean | null | undefined | ((event: never) => void)} Property */
/** @typedef {Node | string | null | undefined} Child */
/** @typedef {Child | Child[] | Child[][]} Children */

/**
 * h("button", {class: "plain", onclick: f, "aria-label": "…"}, "text", child)
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, Property>} properties
 * @param {Children[]} children
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/**
 * The same for SVG.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, Property>} properties
 * @param {Children[]} children
 */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, Property>} properties
 * @param {Children[]} children
 * @returns {E}
 */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function")
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * What is being done, with the seconds it has taken; it counts for as long as it is in the page.
 *
 * @param {string} doing
 */
export function waiting(doing) {
  const element = h("p", { class: "hint waits", role: "status" }, `${doing} …`);
  const began = performance.now();
  let seen = false;
  const timer = setInterval(() => {
    if (seen && !element.isConnected) clearInterval(timer);
    seen ||= element.isConnected;
    element.textContent = `${doing} … ${Math.round((performance.now() - began) / 1000)} s`;
  }, 1000);
  return element;
}

/**
 * What went wrong, in words.
 *
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * A number as a person reads it: at most four significant digits.
 *
 * @param {number} value
 */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/**
 * @param {number} share
 * @param {number} [digits]
 */
export function percent(share, digits = share < 0.0995 ? 1 : 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/**
 * A word on one line, short enough for a label; control characters become visible.
 *
 * @param {string} text
 */
export function shortened(text, most = 14) {
  const shown = text.replaceAll(/\p{Cc}|\p{Zl}|\p{Zp}/gu, "␣");
  if (shown.length <= most) return shown;
  const letters = Array.from(LETTERS.segment(shown), ({ segment }) => segment); // 👩‍👩‍👧 is one
  if (letters.length <= most) return shown;
  return `${letters.slice(0, Math.ceil(most / 2)).join("")}…${letters.slice(-Math.floor(most / 2) + 1).join("")}`;
}

/**
 * A group of buttons of which one is chosen.
 *
 * @template {string} V
 * @param {string} label
 * @param {Choice<V>[]} options
 * @param {string} chosen
 * @param {(value: V) => void} choose
 */
export function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text, title]) =>
    h(
      "button",
      { type: "button", role: "radio", "data-value": value, title, onclick: () => choose(value) },
      text,
    ),
  );
  const group = Object.assign(
    h("div", { class: "choice", role: "radiogroup", "aria-label": label }, buttons),
    {
      choose(/** @type {string} */ value) {
        for (const button of buttons)
          button.setAttribute("aria-checked", String(button.dataset.value === value));
      },
      name(/** @type {string} */ value, /** @type {string} */ text) {
        for (const button of buttons) if (button.dataset.value === value) button.textContent = text;
      },
      /** Hide what cannot be chosen now. */
      offer(/** @type {(value: string) => boolean} */ can) {
        for (const button of buttons) button.hidden = !can(button.dataset.value ?? "");
      },
    },
  );
  group.choose(chosen);
  return group;
}
//# sourceURL=headscope/dom.js
