"""A text of 2,000 tokens: the page goes on answering while the worker works."""

import json
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from viewer.conftest import Open

pytestmark = pytest.mark.browser

LONGEST = 200  # milliseconds
PLACES = {"head": (200, 300), "text": (100, 200), "segments": (100, 200), "compare": (200, 300)}


def main_thread_tasks(trace: bytes) -> list[float]:
    """Milliseconds of processor time that each task took on the thread of the marked page.

    Processor time, because a busy machine stretches the time on the wall and says nothing of us.
    """
    events = json.loads(trace)["traceEvents"]
    here = {(e["pid"], e["tid"]) for e in events if e["name"] == "here"}
    assert len(here) == 1, "the page marked itself"
    return [
        e["tdur"] / 1000
        for e in events
        if e["ph"] == "X" and e["name"] == "RunTask" and (e["pid"], e["tid"]) in here
    ]


def test_no_task_holds_up_the_page(
    chromium: Any,
    open_tab: Open,
    specimen: hs.Scope,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Where attention goes takes longest to work out, and is of no matter here.
    monkeypatch.setattr("headscope.viewer.packed.packed_focus", lambda _: None)
    reading = specimen.read("\n\n".join([hs.sample_text()] * 5)[:8700])
    assert 1900 < len(reading) < 2300
    page = reading.save(tmp_path / "long.html")
    categories = ["blink.user_timing", "disabled-by-default-devtools.timeline"]
    chromium.start_tracing(categories=categories)
    tab = open_tab(page.as_uri(), offline=True)
    tab.page.evaluate("performance.mark('here')")
    for view, (x, y) in PLACES.items():
        tab.set(view=view, layer=3, head=4)
        for step in range(8):
            tab.page.mouse.move(x + 25 * step, y + 11 * step)
    tab.set(view="head")
    for rule in ("quantile(0.02)", "sigma(2.5)", "nearest(4)"):
        tab.set(rule=rule)
    for _ in range(4):
        tab.page.mouse.wheel(0, -200)
    tab.set(reading="centred", beside="raw,cosine", special="left_out")
    tab.set(view="atlas", cells="shared")
    took = sorted(main_thread_tasks(chromium.stop_tracing()))
    assert len(took) > 300
    assert took[-1] > 5  # what was measured is not nothing
    assert took[-1] < LONGEST
