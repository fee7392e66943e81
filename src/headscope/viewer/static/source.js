// Where readings come from: blocks inside a saved page, the notebook around it, or the server.

/** @import { Opened, Request, Source } from "headscope/types.js" */

// The token in the address that the server printed; it answers nobody without.
const HEADERS = { Authorization: `Bearer ${new URLSearchParams(location.search).get("token") ?? ""}` };

// Base64 in parts, not executed.
const DATA = "script.headscope-data";
const STUDY = "script.headscope-study";

/**
 * A saved page: a reading, a study or both are inside it, and there is no model to ask.
 *
 * @implements {Source}
 */
class SavedPage {
  canRead = false;

  /** @param {Element[]} blocks */
  constructor(blocks) {
    this.blocks = blocks;
  }

  async session() {
    const blocks = [...document.querySelectorAll(STUDY)].map(({ textContent }) => atob(textContent));
    const bytes = Uint8Array.from(blocks.join(""), (c) => c.charCodeAt(0));
    return {
      started: null,
      study: blocks.length ? JSON.parse(new TextDecoder().decode(bytes)) : null,
      readable: this.blocks.length > 0,
    };
  }

  /** Block by block: all at once, tens of megabytes would hold up the page. */
  async *parts() {
    for (const block of this.blocks) {
      yield block.textContent ?? "";
      block.remove();
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  /** @param {Opened} reading */
  async focus({ header }) {
    return header.focus ?? null;
  }

  /** @param {Opened} reading */
  async segments({ header }) {
    if (!header.segments) throw new Error("This page does not hold how its text is cut.");
    return header.segments;
  }

  /**
   * @param {Opened} _reading
   * @param {number} _layer
   * @param {number} _head
   * @returns {Promise<ArrayBuffer>}
   */
  async attention(_reading, _layer, _head) {
    throw new Error(
      "Attention is not kept in a saved page: it takes tokens² per head. " +
        "Open the text with “headscope view” to see it.",
    );
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   * @param {number | null} position
   */
  async writes({ header }, layer, head, position) {
    if (position !== null)
      throw new Error("Of one token it is asked of the model: open the text with “headscope view”.");
    return header.writes?.[layer - 1][head - 1] ?? null;
  }
}

/** A page inside a notebook: a widget beside it passes questions on to the kernel, while it lives. */
class Notebook extends SavedPage {
  /**
   * @param {Element[]} blocks
   * @param {string} name
   */
  constructor(blocks, name) {
    super(blocks);
    this.name = name;
    /** @type {Map<string, {resolve: (buffer: ArrayBuffer) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    addEventListener("message", ({ data }) => {
      const waiting = data?.headscope === this.name ? this.waiting.get(data.id) : undefined;
      if (!waiting) return;
      this.waiting.delete(data.id);
      if (data.error) waiting.reject(new Error(data.error));
      else waiting.resolve(data.buffer);
    });
  }

  /**
   * @override
   * @param {Opened} _reading
   * @param {number} layer
   * @param {number} head
   * @returns {Promise<ArrayBuffer>}
   */
  attention(_reading, layer, head) {
    const id = `${layer}-${head}-${Math.random()}`;
    const silent = "Attention is asked of the notebook's kernel, which does not answer. Run the cell again.";
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      parent.postMessage({ headscope: this.name, ask: "attention", id, layer, head }, "*");
      setTimeout(() => reject(new Error(silent)), 20000);
    });
  }
}

/**
 * The local server: it reads any text with the models it was started with.
 *
 * @implements {Source}
 */
class Server {
  canRead = true;

  async session() {
    const started = await (await answered(fetch("/api/session", { headers: HEADERS }))).json();
    return { started, study: started.study, readable: started.models.length > 0 };
  }

  /** @param {Request} request */
  async *parts({ model, text }) {
    yield await (await answered(post("/api/read", { model, text }))).arrayBuffer();
  }

  /** @param {Opened} reading */
  async focus({ request: { model, text } }) {
    return (await (await answered(post("/api/focus", { model, text }))).json()).focus;
  }

  /** @param {Opened} reading */
  async segments({ request: { model, text } }) {
    return (await answered(post("/api/segments", { model, text }))).json();
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   */
  async attention({ request: { model, text } }, layer, head) {
    return (await answered(post("/api/attention", { model, text, layer, head }))).arrayBuffer();
  }

  /**
   * @param {Opened} reading
   * @param {number} layer
   * @param {number} head
   * @param {number | null} position
   */
  async writes({ request: { model, text } }, layer, head, position) {
    return (await answered(post("/api/writes", { model, text, layer, head, position }))).json();
  }
}

/**
 * @param {string} path
 * @param {object} body
 */
function post(path, body) {
  return fetch(path, {
    method: "POST",
    headers: { ...HEADERS, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/**
 * The server's answer; an error of its own words where it gives none.
 *
 * @param {Promise<Response>} request
 */
async function answered(request) {
  /** @type {Response} */
  let response;
  try {
    response = await request;
  } catch {
    throw new Error("The server does not answer. Is “headscope view” still running?");
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
  throw new Error(error);
}

/** @returns {Source} */
export function findSource() {
  const blocks = [...document.querySelectorAll(DATA)];
  const notebook = document.documentElement.dataset.notebook;
  if (notebook) return new Notebook(blocks, notebook);
  return blocks.length || document.querySelector(STUDY) ? new SavedPage(blocks) : new Server();
}
//# sourceURL=headscope/source.js
