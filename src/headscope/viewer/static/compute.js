// The worker that does all arithmetic, so that the page never stops answering.

const WORKER = "#headscope-worker"; // where every shell puts the worker's source, as base64

function text(base64) {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
}

export class Compute {
  constructor() {
    const source = text(document.querySelector(WORKER).textContent);
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.waiting = new Map();
    this.number = 0;
    this.worker.onmessage = ({ data: { id, answer, error } }) => {
      const [resolve, reject] = this.waiting.get(id) ?? [];
      this.waiting.delete(id);
      if (error !== undefined) reject?.(new Error(error));
      else resolve?.(answer);
    };
    this.worker.onerror = (event) => {
      for (const [, reject] of this.waiting.values()) reject(new Error(event.message));
      this.waiting.clear();
    };
  }

  /** Ask the worker; `give` are buffers that it may keep. */
  ask(ask, question, give = []) {
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject, ask]);
      this.worker.postMessage({ ...question, ask, id }, give);
    });
  }

  /** Whether nothing is open but the measures, which nobody waits for. */
  get idle() {
    return [...this.waiting.values()].every(([, , ask]) => ask === "measure");
  }

  /** Tell the worker something that has no answer. */
  tell(ask, fact = {}, give = []) {
    this.worker.postMessage({ ...fact, ask }, give);
  }
}
//# sourceURL=headscope/compute.js
