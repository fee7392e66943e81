// What is looked at, kept in the address after "#", so that a view can be shared and gone back to.

export const DEFAULTS = {
  view: "atlas", // atlas, head, text, segments or compare
  layer: "1", // layers and heads are counted from 1
  head: "1",
  reading: "raw", // raw, cosine or centred
  beside: "", // further matrices in the head view, joined by commas
  rule: "quantile(0.01)", // which pairs are high
  special: "kept", // or left_out
  unit: "token", // what has a row of its own: token or word
  cells: "head", // the atlas' squares: matrices with colours per head or shared, or a measure
  measure: "", // of the atlas; those of a study begin with "study."
  by: "value", // or lift: the measure as a multiple of chance
  order: "layer", // of the atlas: layer; or high or low values of the measure first
  label: "", // in the atlas: only heads that a study gives this label
  least: "", // in the atlas: heads whose measure is lower are left out
  most: "", // and those whose measure is higher
  granularity: "1", // of the segments
  token: "", // position of the token that is held on to
  other: "", // the second head in a comparison, as layer-head
  model: "", // as named to the server
  text: "", // only from the server, and only if short
};

const ALLOWED = {
  view: ["atlas", "head", "text", "segments", "compare"],
  reading: ["raw", "cosine", "centred"],
  special: ["kept", "left_out"],
  unit: ["token", "word"],
  cells: ["head", "shared", "measure"],
  by: ["value", "lift"],
  order: ["layer", "high", "low"],
};

// A notebook's frame has no address of its own to write to.
const addressable = location.protocol !== "about:";

export class State {
  constructor() {
    this.values = { ...DEFAULTS, ...fromAddress() };
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

  set(changes) {
    const changed = new Set();
    for (const [name, value] of Object.entries(changes)) {
      const next = value === null ? "" : String(value);
      if (this.values[name] !== next) changed.add(name);
      this.values[name] = next;
    }
    if (!changed.size) return;
    if (addressable) history.replaceState(null, "", this.address() || location.pathname + location.search);
    for (const listen of this.listeners) listen(changed);
  }

  address() {
    const said = Object.entries(this.values).filter(([name, value]) => value !== DEFAULTS[name]);
    return said.length ? `#${new URLSearchParams(said)}` : "";
  }
}

function fromAddress() {
  const found = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const known = name in DEFAULTS && (!ALLOWED[name] || ALLOWED[name].includes(value));
    if (known) found[name] = value;
  }
  return found;
}
//# sourceURL=headscope/state.js
