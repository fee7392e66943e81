"""The text cut into topics: the slider, the bands, and why it is cut there."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from headscope.segment.segments import Segments
from headscope.viewer.segmented import GRANULARITIES, packed_segments
from viewer.conftest import Open, Served, Tab, served
from viewer.test_exporting import SVG, exported

GRANULARITY = (0.5, 1.0, 2.0, 8.0)


@pytest.fixture(scope="module")
def sample(specimen: hs.Scope) -> hs.Reading:
    return specimen.read(hs.sample_text())


@pytest.fixture(scope="module")
def sample_page(sample: hs.Reading, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.save(tmp_path_factory.mktemp("sample") / "sample.html")


@pytest.fixture(scope="module")
def said(sample: hs.Reading) -> dict[str, Any]:
    return packed_segments(sample)


@pytest.fixture(scope="module")
def library(specimen: hs.Scope) -> dict[float, Segments]:
    return {g: specimen.segment(hs.sample_text(), granularity=g) for g in GRANULARITY}


@pytest.fixture(params=["server", "file"])
def cut(
    request: pytest.FixtureRequest, open_tab: Open, specimen: hs.Scope, sample_page: Path
) -> Tab:
    """The sample text in its segments: from the server, and from disk with the network off."""
    looked = "#view=segments"
    if request.param == "file":
        return open_tab(sample_page.as_uri() + looked, offline=True)
    running: Served = request.getfixturevalue("sample_server")
    tab = open_tab(running.address + looked)
    tab.until("document.querySelector('.segment')")
    return tab


@pytest.fixture(scope="module")
def sample_server(specimen: hs.Scope) -> Iterator[Served]:
    with served({"specimen": specimen}, hs.sample_text()) as running:
        yield running


@pytest.mark.parametrize("granularity", GRANULARITY)
def test_what_is_handed_over_is_what_the_library_says(
    library: dict[float, Segments], sample: hs.Reading, said: dict[str, Any], granularity: float
) -> None:
    why = library[granularity].explain()
    way = said["ways"][said["way"][GRANULARITIES.index(granularity)]]
    assert tuple(way["cuts"]) == why.cuts
    assert way["scores"] == pytest.approx(why.scores, abs=2e-4)
    assert said["learned"] == pytest.approx(why.start, abs=2e-4)
    assert [tuple(head[:2]) for head in way["heads"]] == [head[:2] for head in why.heads[:12]]
    upper = np.triu_indices(len(why.spans))
    assert np.array(said["kernel"]) / 1000 == pytest.approx(why.kernel[upper], abs=6e-4)
    for (start, _), token in zip(why.spans, said["starts"], strict=True):
        assert sample.tokens.starts[token] == start


@pytest.mark.parametrize("text", ["Fog.", "x" * 500, "\n The lamp.\n\n", "A. B. C. D. E. F. " * 3])
def test_texts_with_little_to_cut_are_handed_over_too(tiny: hs.Scope, text: str) -> None:
    said = packed_segments(tiny.read(text))
    units = len(said["starts"])
    assert len(said["learned"]) == units
    assert len(said["kernel"]) == units * (units + 1) // 2
    assert len(said["way"]) == len(GRANULARITIES)
    assert all(len(way["scores"]) == units for way in said["ways"])


@pytest.mark.browser
def test_the_slider_cuts_the_text_finer(cut: Tab, library: dict[float, Segments]) -> None:
    counts = []
    for granularity in (0.5, 1.0, 2.0):
        cut.set(granularity=granularity)
        expected = library[granularity]
        texts = cut.page.evaluate(
            "[...document.querySelectorAll('.segment')].map((s) => s.textContent)"
        )
        assert [text.strip() for text in texts] == [part.strip() for part in expected]
        assert "".join(texts) == hs.sample_text().rstrip()
        said = cut.page.evaluate(
            "[...document.querySelectorAll('.segment')].map((s) => s.dataset.said)"
        )
        scores = [float(re.findall(r"score (\S+)", one)[0]) for one in said[1:]]
        assert scores == pytest.approx([part.score for part in expected[1:]], rel=0.01)
        counts.append(len(texts))
    assert counts == sorted(set(counts))
    cut.page.focus("input[aria-label='Granularity of the segments']")
    cut.page.keyboard.press("Home")
    cut.settle()
    assert cut.page.locator(".segment").count() == 1
    assert cut.hash()["granularity"] == "0.125"
    assert "1 segment of 30 sentences" in cut.page.inner_text(".segments .amount")
    named = cut.page.get_attribute("input[type=range]", "aria-valuetext")
    assert named == "granularity 0.125: 1 segment"


@pytest.mark.browser
def test_a_sentence_shades_those_that_are_like_it(cut: Tab, library: dict[float, Segments]) -> None:
    cut.set(granularity=2)
    kernel = library[1.0].explain().kernel
    values = cut.page.evaluate("[...headscope.views.segments.matrix.drawn.values]")
    assert np.array(values).reshape(kernel.shape) == pytest.approx(kernel, abs=6e-4)
    why = library[2.0].explain()
    first = why.cuts[0]
    cut.page.hover(f".unit[data-unit='{first}']", position={"x": 40, "y": 8})
    cut.page.wait_for_timeout(50)
    shades = cut.page.evaluate(
        "[...document.querySelectorAll('.unit')].map((u) => u.style.backgroundColor)"
    )
    blueness = [(lambda c: c[2] - c[0])([int(n) for n in re.findall(r"\d+", s)]) for s in shades]
    others = np.arange(len(kernel)) != first
    assert np.corrcoef(kernel[first][others], np.array(blueness)[others])[0, 1] > 0.9
    said = cut.page.inner_text(".segments .readout")
    assert f"a boundary before it has score {float(f'{why.scores[first]:.3g}'):g}" in said
    boxes = cut.page.locator(".boundaries rect")
    assert boxes.count() == len(why.spans) - 1
    assert cut.page.locator(".boundaries rect:not(.other)").count() == len(why.cuts)


@pytest.mark.browser
def test_the_heads_behind_it_can_be_looked_into(cut: Tab, library: dict[float, Segments]) -> None:
    cut.set(granularity=8)
    layer, head, share = library[8.0].explain().heads[0]
    first = cut.page.locator(".segments .pairs li").first
    assert f"Layer {layer}, head {head}" in first.inner_text()
    assert f"{100 * share:.1f} %" in first.inner_text()
    first.locator("button").click()
    cut.settle()
    assert cut.hash() == {
        "view": "head",
        "layer": str(layer),
        "head": str(head),
        "granularity": "8",
    }


@pytest.mark.browser
def test_the_segments_can_be_exported(
    cut: Tab, library: dict[float, Segments], tmp_path: Path
) -> None:
    cut.set(granularity=2)
    segments = library[2.0]
    rows = list(csv.DictReader(io.StringIO(exported(cut, "CSV", tmp_path).decode(), newline="")))
    why = segments.explain()
    assert [row["text"] for row in rows] == [hs.sample_text()[a:b] for a, b in why.spans]
    assert [float(row["score"]) for row in rows] == pytest.approx(why.scores, abs=3e-4)
    assert [k for k, row in enumerate(rows) if row["boundary"] == "true"] == list(why.cuts)
    assert int(rows[-1]["segment"]) == len(segments)
    drawing = ElementTree.fromstring(exported(cut, "SVG", tmp_path))
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    assert {"Bread", "planet", "1"} <= set(words)
    assert sum((word or "").count("· score") for word in words) == len(segments) - 1
    assert len(list(drawing.iter(f"{SVG}image"))) == 1
