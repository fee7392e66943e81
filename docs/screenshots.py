"""Make the README's three pictures of the viewer: `python docs/screenshots.py`.

Needs a Chromium and Playwright (`pip install -e '.[dev]'`). The pictures show the sample text read
by the specimen, with a study of its paragraphs beside it, from a page saved to a temporary folder,
with the network off.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import headscope as hs
from headscope.sample import SAMPLE

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
VIEWS = {
    "atlas": "layer=3&head=9",
    "head": "view=head&layer=3&head=9&reading=cosine",
    "text": "view=text&layer=8&head=4&special=left_out",
}


def wait(page: Page) -> None:
    """Until the view is drawn and every head is measured."""
    while not page.evaluate(
        "globalThis.headscope?.session.reading && headscope.idle() "
        "&& headscope.views.atlas.measures?.size === 144"
    ):
        page.wait_for_timeout(50)
    page.wait_for_timeout(300)


def chromium() -> str:
    """Where a Chromium is."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("no Chromium is installed: looked for chromium and google-chrome")
    return found


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        scope = hs.load()
        study = scope.study(SAMPLE, Path(folder) / "study", document="paragraph")
        saved = study.save(Path(folder) / "study.html", scope.read(hs.sample_text()))
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        size = {"width": 1280, "height": 800}
        page = browser.new_context(viewport=size, offline=True).new_page()  # type: ignore[arg-type]
        page.goto(saved.as_uri())
        wait(page)
        for name, looked in VIEWS.items():
            page.evaluate("looked => { location.hash = looked; }", looked)
            wait(page)
            if name == "text":
                page.locator(".page .token", has_text="the").nth(5).hover()
                page.wait_for_timeout(200)
            # Matrices look like noise to PNG: it would be five times the size.
            page.screenshot(path=HERE / f"viewer-{name}.jpg", type="jpeg", quality=82)
        browser.close()


if __name__ == "__main__":
    main()
