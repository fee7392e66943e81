// Elements made from values. Text only ever enters the page as text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "plain", onclick: f, "aria-label": "…"}, "text", child) */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number as a person reads it: at most four significant digits. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

export function percent(share, digits = share < 0.0995 ? 1 : 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** A word on one line, short enough for a label; control characters become visible. */
export function shortened(text, most = 14) {
  const letters = Array.from(text, (c) => (/\p{Cc}|\p{Zl}|\p{Zp}/u.test(c) ? "␣" : c));
  if (letters.length <= most) return letters.join("");
  return `${letters.slice(0, Math.ceil(most / 2)).join("")}…${letters.slice(-Math.floor(most / 2) + 1).join("")}`;
}

/** A group of buttons of which one is chosen. */
export function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text, title]) =>
    h(
      "button",
      { type: "button", role: "radio", "data-value": value, title, onclick: () => choose(value) },
      text,
    ),
  );
  const group = h("div", { class: "choice", role: "radiogroup", "aria-label": label }, buttons);
  group.choose = (value) => {
    for (const button of buttons) {
      button.setAttribute("aria-checked", String(button.dataset.value === value));
    }
  };
  group.choose(chosen);
  return group;
}
//# sourceURL=headscope/dom.js
