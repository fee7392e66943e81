// Light and dark: the system's choice unless a person makes another.

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

export function theme() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

export function switchTheme() {
  document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
  tell();
}

export function onTheme(listen) {
  listeners.push(listen);
}

function tell() {
  for (const listen of listeners) listen();
}

dark.addEventListener("change", tell);

/** The value of a colour of the style sheet, for canvases. */
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
//# sourceURL=headscope/theme.js
