"""The demo as a newcomer meets it: the specimen reads the sample text, and a page opens."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headscope as hs

PAGES = ("report.html", "reading.html")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    code = "from headscope.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "12 layers × 12 heads × 16" in done.stdout
    for page in PAGES:
        assert (folder / page).as_uri() in done.stderr.replace("\n", "")
    return folder


def test_the_specimen_reads_the_sample_text(specimen: hs.Scope) -> None:
    assert (specimen.shape.layers, specimen.shape.heads, specimen.shape.head_size) == (12, 12, 16)
    reading = specimen.read(hs.sample_text())
    assert len(reading.layers) == 12


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk_and_asks_for_nothing_else(
    demo: Path, chromium: Any, name: str
) -> None:
    page = demo / name
    tab = chromium.new_page(viewport={"width": 1280, "height": 800})
    asked: list[str] = []
    said: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(page.as_uri())
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
    assert said == []
    assert "specimen" in tab.title().lower() or "specimen" in tab.inner_text("body")
    if name == "report.html":
        tab.click("text=Every head")
        tab.click(".cell >> nth=30")
        assert tab.locator("#head-3-7").is_visible()  # its card has opened
    wide = tab.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280
