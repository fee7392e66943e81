// The worker that does all arithmetic, so that the page never stops answering.

/** @import { Answer, Ask, FromWorker, Question, Tell, Told } from "headscope/types.js" */
/** @typedef {{resolve: (answer: Answer<Ask>) => void, reject: (error: Error) => void, ask: Ask}} Waiting */

const WORKER = "#headscope-worker"; // where every shell puts the worker's source, as base64

/** @param {string} base64 */
function text(base64) {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
}

export class Compute {
  constructor() {
    const source = text(document.querySelector(WORKER)?.textContent ?? "");
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    /** @type {Map<number, Waiting>} */
    this.waiting = new Map();
    this.number = 0;
    this.worker.onmessage = (/** @type {MessageEvent<FromWorker>} */ { data }) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error !== undefined) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.answer);
    };
    this.worker.onerror = (event) => {
      for (const { reject } of this.waiting.values()) reject(new Error(event.message));
      this.waiting.clear();
    };
  }

  /**
   * Ask the worker; `give` are buffers that it may keep.
   *
   * @template {Ask} A
   * @param {A} ask
   * @param {Question<A>} question
   * @param {Transferable[]} give
   * @returns {Promise<Answer<A>>}
   */
  ask(ask, question, give = []) {
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: /** @type {Waiting["resolve"]} */ (resolve), reject, ask });
      this.worker.postMessage({ ...question, ask, id }, give);
    });
  }

  /** Whether nothing is open but the measures, which nobody waits for. */
  get idle() {
    return [...this.waiting.values()].every(({ ask }) => ask === "measure");
  }

  /**
   * Tell the worker something that has no answer.
   *
   * @template {Tell} T
   * @param {T} ask
   * @param {Told[T]} fact
   * @param {Transferable[]} give
   */
  tell(ask, fact, give = []) {
    this.worker.postMessage({ ...fact, ask }, give);
  }
}
//# sourceURL=headscope/compute.js
