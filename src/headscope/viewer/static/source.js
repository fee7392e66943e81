// Where readings come from: blocks inside a saved page, the notebook around it, or the server.

// Base64 in parts, not executed.
const DATA = "script.headscope-data";
const STUDY = "script.headscope-study";

/** A saved page: a reading, a study or both are inside it, and there is no model to ask. */
class SavedPage {
  canRead = false;
  attentionNote =
    "Attention is not kept in a saved page: it takes tokens² per head. " +
    "Open the text with “headscope view” to see it.";

  constructor(blocks) {
    this.blocks = blocks;
  }

  async session() {
    const blocks = [...document.querySelectorAll(STUDY)].map(({ textContent }) => atob(textContent));
    const bytes = Uint8Array.from(blocks.join(""), (c) => c.charCodeAt(0));
    return {
      study: blocks.length ? JSON.parse(new TextDecoder().decode(bytes)) : null,
      readable: this.blocks.length > 0,
    };
  }

  /** Block by block: all at once, tens of megabytes would hold up the page. */
  async *parts() {
    for (const block of this.blocks) {
      yield block.textContent;
      block.remove();
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

/** A page inside a notebook: a widget beside it passes questions on to the kernel, while it lives. */
class Notebook extends SavedPage {
  constructor(blocks, name) {
    super(blocks);
    this.name = name;
    this.attentionNote =
      "Attention is asked of the notebook's kernel, which does not answer. " + "Run the cell again.";
    this.waiting = new Map();
    addEventListener("message", ({ data }) => {
      if (data?.headscope !== this.name || !this.waiting.has(data.id)) return;
      const [resolve, reject] = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) reject(new Error(data.error));
      else resolve(data.buffer);
    });
  }

  attention(_, layer, head) {
    const id = `${layer}-${head}-${Math.random()}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject]);
      parent.postMessage({ headscope: this.name, ask: "attention", id, layer, head }, "*");
      setTimeout(() => reject(new Error(this.attentionNote)), 20000);
    });
  }
}

/** The local server: it reads any text with the models it was started with. */
class Server {
  canRead = true;

  async session() {
    const said = await (await answered(fetch("/api/session"))).json();
    return { ...said, readable: said.models.length > 0 };
  }

  async *parts({ model, text }) {
    yield await (await answered(post("/api/read", { model, text }))).arrayBuffer();
  }

  async focus({ model, text }) {
    return (await (await answered(post("/api/focus", { model, text }))).json()).focus;
  }

  async segments({ model, text }) {
    return (await answered(post("/api/segments", { model, text }))).json();
  }

  async attention({ model, text }, layer, head) {
    return (await answered(post("/api/attention", { model, text, layer, head }))).arrayBuffer();
  }
}

function post(path, body) {
  return fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function answered(request) {
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

export function findSource() {
  const blocks = [...document.querySelectorAll(DATA)];
  const notebook = document.documentElement.dataset.notebook;
  if (notebook) return new Notebook(blocks, notebook);
  return blocks.length || document.querySelector(STUDY) ? new SavedPage(blocks) : new Server();
}
//# sourceURL=headscope/source.js
