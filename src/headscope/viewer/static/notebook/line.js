// Passes questions from the viewer's frame to the kernel and the answers back. It finds the frame
// by the name both were given, and answers no other.

function render({ model, el }) {
  const name = model.get("name");
  const frame = () => document.querySelector(`iframe[data-headscope="${name}"]`)?.contentWindow;
  const ask = ({ data, source }) => {
    if (data?.headscope !== name || source !== frame()) return;
    model.send({ id: data.id, layer: data.layer, head: data.head });
  };
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
