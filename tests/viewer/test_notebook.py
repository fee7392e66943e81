"""The viewer in a notebook: run by a real kernel, exported, and opened without one."""

import base64
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headscope as hs
from headscope.viewer.packed import packed_attention
from headscope.viewer.page import assets
from headscope.viewer.widget import Line, Viewer

TEXT = "The keeper lit the lamp, and the lamp burned. The keeper slept."


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, tiny: hs.Scope) -> Path:
    """A notebook that shows a reading, then a study."""
    nbclient = pytest.importorskip("nbclient")
    nbconvert = pytest.importorskip("nbconvert")
    nbformat = pytest.importorskip("nbformat")
    study = tmp_path_factory.mktemp("shown") / "study"
    tiny.study([TEXT, "A ship passed the rocks in the fog, and the fog lifted."], study)
    cells = (
        f"import headscope as hs\nhs.load({str(tiny_folder)!r}).read({TEXT!r}).show(height=640)",
        f"hs.open({str(study)!r}).show(height=640)",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        assert [output for output in cell.outputs if output.output_type == "stream"] == []
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own making
def test_an_exported_notebook_shows_the_viewer(chromium: Any, exported: Path) -> None:
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(exported.as_uri(), wait_until="domcontentloaded")
    frames = page.frame_locator("iframe[data-headscope]")
    for frame, text in ((frames.nth(0), "The keeper lit"), (frames.nth(1), "the")):
        frame.locator("button.head").first.wait_for(timeout=30_000)
        assert frame.locator("button.head").count() == 12  # 3 layers × 4 heads
        frame.locator("button", has_text="Text").click()
        assert text in frame.locator(".page").inner_text()
    assert frames.nth(0).locator(".panel .examples").count() == 0
    assert frames.nth(1).locator(".panel .examples li").count() == 2
    frames.nth(1).locator("button", has_text="Segments").click()
    frames.nth(1).locator(".segment").first.wait_for()
    context.close()


def test_the_kernel_answers_what_the_page_cannot_know(tiny: hs.Scope) -> None:
    reading = tiny.read(TEXT)
    line = Line(reading, "name")
    sent: list[tuple[Any, ...]] = []
    line.send = lambda *what: sent.append(what)  # type: ignore[method-assign]
    line._answer(None, {"id": "a", "layer": 2, "head": 3}, None)
    line._answer(None, {"id": "b", "layer": 9, "head": 3}, None)
    line._answer(None, {"id": "c"}, None)
    (first, [weights]), (second,), (third,) = sent
    assert first == {"id": "a"}
    assert weights == packed_attention(reading, 2, 3)
    assert second["id"] == "b"
    assert "layer 9 does not exist" in second["error"]
    assert third["id"] == "c"
    assert third["error"]


@pytest.mark.browser
def test_the_line_carries_attention_from_the_kernel_to_the_page(
    chromium: Any, tiny: hs.Scope, tmp_path: Path
) -> None:
    """The kernel is stood in for by the test; frame, line and page are the real ones."""
    reading = tiny.read(TEXT)
    viewer = Viewer(reading)
    module = base64.b64encode(assets().line.encode()).decode()
    host = tmp_path / "host.html"
    host.write_text(
        f"""<!DOCTYPE html><meta charset="utf-8"><div id="line"></div>{viewer.html}
        <script type="module">
            import line from "data:text/javascript;base64,{module}";
            const model = {{
                get: () => "{escape(viewer.name)}",
                send: (asked) => {{ window.asked = asked; }},
                on: (_, answer) => {{ window.answer = answer; }},
                off: () => {{}},
            }};
            line.render({{ model, el: document.getElementById("line") }});
        </script>""",
        encoding="utf-8",
    )
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(host.as_uri())
    frame = page.frame_locator("iframe[data-headscope]")
    frame.locator("button", has_text="Head").first.click()
    frame.locator(".toggles button", has_text="attention").click()
    inside = page.frames[1]
    for _ in range(500):
        asked = page.evaluate("window.asked")
        if asked:
            break
        page.wait_for_timeout(20)
    assert (asked["layer"], asked["head"]) == (1, 1)
    data = base64.b64encode(packed_attention(reading, 1, 1)).decode()
    page.evaluate(
        """([id, data]) => {
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
            window.answer({ id }, [new DataView(bytes.buffer)]);
        }""",
        [asked["id"], data],
    )
    shown = "[...(headscope.views.head.shown.get('attention').matrix.drawn?.values ?? [])]"
    for _ in range(500):
        values = inside.evaluate(shown)
        if values:
            break
        page.wait_for_timeout(20)
    A = reading.attention(1, 1)
    assert np.array(values).reshape(A.shape) == pytest.approx(A, abs=1e-3)
    page.context.close()
