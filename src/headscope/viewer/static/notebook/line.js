// Passes questions from the viewer's frame to the kernel and the answers back. It finds the frame
// by the name both were given, and answers no other.

/**
 * What anywidget hands over: the part of it that is used.
 *
 * @typedef {object} Model
 * @property {(name: "name") => string} get
 * @property {(message: object) => void} send
 * @property {(event: "msg:custom", listen: Listen) => void} on
 * @property {(event: "msg:custom", listen: Listen) => void} off
 */
/** @typedef {(message: {id: string, error?: string}, buffers?: DataView[]) => void} Listen */

/** @param {{model: Model, el: HTMLElement}} widget */
function render({ model, el }) {
  const name = model.get("name");
  const frame = () => {
    const found = document.querySelector(`iframe[data-headscope="${name}"]`);
    return found instanceof HTMLIFrameElement ? found.contentWindow : null;
  };
  const ask = (/** @type {MessageEvent} */ { data, source }) => {
    if (data?.headscope !== name || source !== frame()) return;
    model.send({ id: data.id, layer: data.layer, head: data.head });
  };
  /** @type {Listen} */
  const answer = ({ id, error }, [view] = []) => {
    const bytes = view ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice() : null;
    frame()?.postMessage({ headscope: name, id, error, buffer: bytes?.buffer }, "*");
  };
  addEventListener("message", ask);
  model.on("msg:custom", answer);
  el.style.display = "none";
  return () => {
    removeEventListener("message", ask);
    model.off("msg:custom", answer);
  };
}

export default { render };
