// Light and dark: the system's choice unless a person makes another.

/** @import { Theme } from "headscope/types.js" */

const dark = matchMedia("(prefers-color-scheme: dark)");
/** @type {(() => void)[]} */
const listeners = [];

/** @returns {Theme} */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && dark.matches) ? "dark" : "light";
}

export function switchTheme() {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  tell();
}

/** @param {() => void} listen */
export function onTheme(listen) {
  listeners.push(listen);
}

function tell() {
  for (const listen of listeners) listen();
}

dark.addEventListener("change", tell);

/**
 * The value of a colour of the style sheet, for canvases.
 *
 * @param {string} name
 */
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
//# sourceURL=headscope/theme.js
