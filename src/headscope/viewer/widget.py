"""The viewer in a notebook: a frame that holds the whole page, and a line to the kernel.

What a notebook keeps is the self-contained page in an `<iframe srcdoc>`, so that it is still there
when the notebook is exported, mailed or opened without a kernel. Beside it stands an anywidget that
shows nothing: while the kernel lives it answers what the page cannot know, the attention weights.
"""

import uuid
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from headscope.errors import HeadscopeError
from headscope.markup import h, written
from headscope.viewer.packed import packed_attention
from headscope.viewer.page import assets, saved_page

if TYPE_CHECKING:
    from headscope.placed import PlacedReading
    from headscope.reading import Reading
    from headscope.study.folder import Study


class Line(anywidget.AnyWidget):
    """The line from one frame to the kernel."""

    _esm = assets().line
    name = traitlets.Unicode().tag(sync=True)

    def __init__(self, reading: "Reading | PlacedReading", name: str):
        super().__init__(name=name)
        self.reading = reading
        self.on_msg(self._answer)

    def _answer(self, _: Any, asked: dict[str, Any], __: Any) -> None:
        try:
            layer, head = int(asked["layer"]), int(asked["head"])
            weights = packed_attention(self.reading, layer, head)
        except (HeadscopeError, KeyError, TypeError, ValueError) as error:
            self.send({"id": asked.get("id"), "error": str(error)})
        else:
            self.send({"id": asked["id"]}, [weights])


class Viewer:
    """What `reading.show()` and `study.show()` give: the last value of a cell shows itself."""

    def __init__(
        self,
        reading: "Reading | PlacedReading | None",
        study: "Study | None" = None,
        *,
        missing: str = "",
        height: int = 760,
    ):
        self.name = uuid.uuid4().hex
        self.line = None if reading is None else Line(reading, self.name)
        page = saved_page(reading, study, missing=missing, notebook=self.name)
        frame = {
            "data-headscope": self.name,
            "srcdoc": page,
            "title": "headscope",
            "style": f"width: 100%; height: {int(height)}px; border: 0",
        }
        self.html = written(h("iframe", frame))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        page = {"text/html": self.html, "text/plain": "the viewer of headscope"}
        display(page, raw=True)  # type: ignore[no-untyped-call]
        if self.line is not None:
            display(self.line)  # type: ignore[no-untyped-call]
