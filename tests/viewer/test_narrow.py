"""Half a screen, or a phone: every view is one column, and nothing hangs out of it."""

from pathlib import Path

import pytest

from viewer.conftest import Open

pytestmark = pytest.mark.browser

OUTSIDE = """[...document.querySelectorAll("main *, header *")]
    .filter((part) => !part.closest(".grid, .sheet, svg"))
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
    .map((part) => part.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("width", [600, 400])
def test_nothing_hangs_out_of_a_narrow_window(open_tab: Open, saved: Path, width: int) -> None:
    tab = open_tab(saved.as_uri(), viewport={"width": width, "height": 800}, offline=True)
    for view in ("atlas", "head", "text", "segments", "compare"):
        tab.set(view=view, token=3, beside="cosine")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert tab.page.evaluate(OUTSIDE) == [], view
        for matrix in tab.page.locator("main .matrix:visible").all():
            box = matrix.bounding_box()
            assert box["width"] > 0.6 * width
            assert abs(box["width"] - box["height"]) < 2
