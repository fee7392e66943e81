// What is looked at, kept in the address after "#", so that a view can be shared and gone back to.

/** @import { Changes, Values } from "headscope/types.js" */

/** @type {Values} */
export const DEFAULTS = {
  view: "atlas", // atlas, head, text, segments or compare
  layer: "1", // rows of the atlas and heads are counted from 1; `layerNumber` names a row
  head: "1",
  reading: "raw", // raw, cosine or centred
  beside: "", // further matrices in the head view, joined by commas
  rule: "quantile(0.01)", // which pairs are high
  special: "kept", // or left_out
  across: "left_out", // or kept: pairs across the windows of a long text
  unit: "token", // what has a row of its own: token or word
  cells: "", // the atlas' squares: label, matrices with colours per head or shared, or a measure
  measure: "", // of the atlas; those of a study begin with "study."
  by: "value", // or lift: the measure as a multiple of chance
  order: "layer", // of the atlas: layer; high or low values of the measure first; or map
  label: "", // in the atlas: only heads that a study gives this label
  least: "", // in the atlas: heads whose measure is lower are left out
  most: "", // and those whose measure is higher
  granularity: "1", // of the segments
  communities: "", // or shown: in the text, those of the head by colours
  token: "", // position of the token that is held on to
  other: "", // the second head in a comparison, as layer-head
  model: "", // as named to the server
  text: "", // only from the server, and only if short
};

/** @type {Partial<Record<keyof Values, string[]>>} */
const ALLOWED = {
  view: ["atlas", "head", "text", "segments", "compare"],
  reading: ["raw", "cosine", "centred"],
  special: ["kept", "left_out"],
  across: ["left_out", "kept"],
  unit: ["token", "word"],
  communities: ["", "shown"],
  cells: ["label", "head", "shared", "measure"],
  by: ["value", "lift"],
  order: ["layer", "high", "low", "map"],
};

const NAMES = /** @type {(keyof Values)[]} */ (Object.keys(DEFAULTS));

// A notebook's frame has no address of its own to write to.
const addressable = location.protocol !== "about:";

export class State {
  constructor() {
    /** @type {Values} */
    this.values = { ...DEFAULTS, ...fromAddress() };
    /** @type {((changed: Set<keyof Values>) => void)[]} */
    this.listeners = [];
    addEventListener("hashchange", () => this.set({ ...DEFAULTS, ...fromAddress() }));
  }

  get layer() {
    return Number(this.values.layer);
  }
  get head() {
    return Number(this.values.head);
  }
  get token() {
    return this.values.token === "" ? null : Number(this.values.token);
  }

  /** @param {Changes} changes */
  set(changes) {
    const texts = Object.entries(changes).map(([name, value]) => [name, value === null ? "" : String(value)]);
    const next = /** @type {Values} */ ({ ...this.values, ...Object.fromEntries(texts) });
    const changed = new Set(NAMES.filter((name) => next[name] !== this.values[name]));
    this.values = next;
    if (!changed.size) return;
    if (addressable) history.replaceState(null, "", this.address() || location.pathname + location.search);
    for (const listen of this.listeners) listen(changed);
  }

  address() {
    const said = NAMES.filter((name) => this.values[name] !== DEFAULTS[name]);
    return said.length ? `#${new URLSearchParams(said.map((name) => [name, this.values[name]]))}` : "";
  }
}

/** @returns {Partial<Values>} */
function fromAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const known = NAMES.filter((name) => {
    const value = said.get(name);
    return value !== null && (ALLOWED[name]?.includes(value) ?? true);
  });
  return Object.fromEntries(known.map((name) => [name, said.get(name)]));
}
//# sourceURL=headscope/state.js
