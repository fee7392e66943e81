"""A text longer than the model reads at once: its windows are seen, and pairs across them apart."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from viewer.conftest import Open, Tab
from viewer.test_exporting import SVG, exported
from viewer.test_pictures import pixels_of

pytestmark = pytest.mark.browser

TEXT = (
    "The keeper lit the lamp. The gammarus and the gammarus slept, and the lamp burned all night "
    "in the fog. A ship passed the rocks, and the keeper of the lamp wrote of it in her book. "
) * 2
SWITCH = ".panel:visible .windows input"


@pytest.fixture(scope="module")
def long(specimen: hs.Scope) -> hs.Reading:
    reading = specimen.read(TEXT, window=48)
    assert 3 <= len(reading.windows) <= 6
    return reading


@pytest.fixture
def tab(long: hs.Reading, open_tab: Open, tmp_path: Path) -> Tab:
    return open_tab(long.save(tmp_path / "long.html").as_uri(), offline=True)


def listed(tab: Tab) -> set[tuple[int, int]]:
    found = tab.page.evaluate(
        """(() => {
            const { found, main } = headscope.views.head;
            return found.pairs.map(([i, j]) => [main.positions[i], main.positions[j]]);
        })()"""
    )
    return set(map(tuple, found))


@pytest.mark.parametrize("rule", ["quantile(0.01)", "peak(0.3)", "sigma(1.0)", "nearest(1)"])
def test_pairs_across_windows_are_left_out_until_asked_for(
    tab: Tab, long: hs.Reading, rule: str
) -> None:
    tab.set(view="head", layer=2, head=3, rule=rule)
    windows = long.token_windows
    for across in (False, True):
        expected = long.high_pairs(2, 3, rule, across_windows=across)
        wanted = {(pair.first, pair.second) for pair in expected[:300]}
        assert len(wanted) > 3
        assert len(wanted ^ listed(tab)) <= 2  # float16, at the threshold
        assert across or all(windows[i] == windows[j] for i, j in listed(tab))
        assert f"{'taken in here' if across else 'left out'}" in tab.page.inner_text(".windows")
        high, every = tab.page.inner_text(".panel .amount").replace(",", "").split(" of ")
        assert abs(int(high) - len(expected)) <= 2
        i, j = np.triu_indices(len(long), 1)
        assert int(every) == (len(i) if across else (windows[i] == windows[j]).sum())
        tab.page.check(SWITCH)
        tab.settle()
    assert tab.hash()["across"] == "kept"


def test_the_measures_of_all_heads_leave_them_out_too(tab: Tab, long: hs.Reading) -> None:
    for across in (False, True):
        tab.set(across="kept" if across else "left_out")
        tab.until("headscope.views.atlas.measures.size === 144")
        told = tab.page.evaluate("headscope.views.atlas.measures.get(14)")  # layer 2, head 3
        pairs = long.high_pairs(2, 3, across_windows=across)
        same = np.mean([pair.same_sentence for pair in pairs])
        assert told["same_sentence"] == pytest.approx(same, abs=2 / len(pairs))


def test_the_seams_are_drawn_in_the_matrix_and_in_the_text(tab: Tab, long: hs.Reading) -> None:
    tab.set(view="head", layer=2, head=3)
    seams = np.flatnonzero(np.diff(long.token_windows)) + 1
    screen = pixels_of(tab, '[headscope.views.head.shown.get("raw").matrix.base]')[0]
    margin, cell = tab.page.evaluate(
        """(() => {
            const { matrix } = headscope.views.head.shown.get("raw");
            return [matrix.margin, matrix.layout().cell];
        })()"""
    )
    # Where a line runs, the picture is reddest: no colour map has that colour.
    red = screen[..., 0].astype(int) - screen[..., 2]
    drawn = [int(margin + at * cell) for at in seams]
    for line in drawn:
        assert (red[int(margin) + 20 : -20, line - 1 : line + 2].max(axis=1) > 80).all()
        assert (red[line - 1 : line + 2, int(margin) + 20 : -20].max(axis=0) > 80).all()
    tab.set(view="text")
    assert tab.page.locator(".page .seam").count() == len(seams)
    after = tab.page.evaluate(
        """[...document.querySelectorAll(".seam")].map((seam) => {
            while (!seam.dataset.position) seam = seam.nextElementSibling;
            return Number(seam.dataset.position);
        })"""
    )
    assert after == seams.tolist()
    tab.set(special="left_out")
    assert tab.page.evaluate("document.querySelector('.page').textContent") == TEXT


def test_the_seams_are_drawn_over_thumbnails_and_in_what_is_exported(
    tab: Tab, long: hs.Reading, tmp_path: Path
) -> None:
    drawn: Any = tab.page.evaluate(
        "getComputedStyle(document.querySelector('button.head'), '::after').backgroundImage"
    )
    assert drawn.count("linear-gradient") == 2 * (len(long.windows) - 1)
    assert "read in" in tab.page.inner_text(".atlas .left > .hint")
    tab.set(view="head")
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    lines = [e for e in drawing.iter(f"{SVG}line") if e.get("stroke") == "#c8401a"]
    assert len(lines) == 2 * (len(long.windows) - 1)


def test_a_short_text_has_no_windows_to_speak_of(open_tab: Open, saved: Path) -> None:
    tab = open_tab(saved.as_uri(), offline=True)
    tab.set(view="head")
    assert tab.page.locator(".panel .windows").is_hidden()
    tab.set(view="text")
    assert tab.page.locator(".seam").count() == 0


def test_the_same_word_is_another_occurrence_of_it(tab: Tab, long: hs.Reading) -> None:
    tab.set(view="head", rule="quantile(1.0)", across="kept")
    tokens = long.tokens
    i, j = np.triu_indices(len(long), 1)
    types, occurrence = tokens.word_types, tokens.words
    same = (types[i] == types[j]) & (types[i] >= 0) & (occurrence[i] != occurrence[j])
    assert ((types[i] == types[j]) & (types[i] >= 0)).sum() > same.sum() > 50
    told = tab.page.evaluate("headscope.views.head.found.all.sameWord")
    assert told == same.sum()
    pieces = np.flatnonzero(np.diff(occurrence) == 0)
    said = tab.page.evaluate(
        """async (at) => (await import("headscope/words.js"))
            .relation(headscope.session.current.tokens, at, at + 1)""",
        int(pieces[0]),
    )
    assert "pieces of one word" in said
    assert "same word" not in said
