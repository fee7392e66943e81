"""A picture and a sound in the viewer, from a saved page with the network off."""

import base64
from pathlib import Path

import numpy as np
import pytest
import transformers as t

import headscope as hs
from headscope.inputs.picture import png
from senses import SETTINGS, checkerboard, two_tones, vit, wav2vec2

from .conftest import Open

pytestmark = pytest.mark.browser

LIT = """index => [...document.querySelectorAll('.patches rect')].map(
    rect => [Number(rect.dataset.position), 1 - Number(rect.style.fillOpacity) / 0.8])"""


@pytest.fixture(scope="module")
def picture() -> "hs.PlacedReading":
    return hs.load(vit(), t.ViTImageProcessorPil(**SETTINGS)).read(checkerboard())


@pytest.fixture(scope="module")
def page(picture: "hs.PlacedReading", tmp_path_factory: pytest.TempPathFactory) -> str:
    return picture.save(tmp_path_factory.mktemp("picture") / "picture.html").as_uri()


def test_a_patch_pointed_at_lights_what_the_head_brings_together_with_it(
    picture: "hs.PlacedReading", page: str, open_tab: Open
) -> None:
    tab = open_tab(f"{page}#view=text&layer=2&head=3", offline=True)
    tab.page.locator('.patches rect[data-position="6"]').hover()
    lit = dict(tab.page.evaluate(LIT))
    row = picture.similarity(2, 3)[6]
    others = np.sort(np.delete(row, 6))
    low, high = others[len(others) // 2], others[-1]
    for position, light in lit.items():
        expected = 1 if position == 6 else np.clip((row[position] - low) / (high - low), 0, 1)
        assert light == pytest.approx(expected, abs=5e-3)
    assert tab.page.inner_text(".readout b") == "“row 2 col 2”"
    framed = {int(one.get_attribute("data-position")) for one in tab.page.locator(".partner").all()}
    pairs = picture.high_pairs(2, 3)
    ends = {(pair["first"], pair["second"]) for pair in pairs}
    assert framed == {b if a == 6 else a for a, b in ends if 6 in (a, b)}


def test_the_picture_is_the_one_that_the_model_read(
    picture: "hs.PlacedReading", page: str, open_tab: Open
) -> None:
    tab = open_tab(f"{page}#view=text", offline=True)
    source = tab.page.locator(".plate img").get_attribute("src")
    assert source == f"data:image/png;base64,{base64.b64encode(png(picture.picture)).decode()}"
    assert tab.page.evaluate("document.querySelector('.plate img').naturalWidth") == 64
    frame, last = (
        tab.page.locator(one).bounding_box()
        for one in (".plate img", '.patches rect[data-position="16"]')
    )
    assert last["x"] + last["width"] == pytest.approx(frame["x"] + frame["width"], abs=2)
    assert last["y"] + last["height"] == pytest.approx(frame["y"] + frame["height"], abs=2)


def test_what_only_a_text_has_is_absent(page: str, open_tab: Open) -> None:
    tab = open_tab(page, offline=True)
    buttons = tab.page.locator("header .choice").first.locator("button").all()
    shown = [one.inner_text() for one in buttons if one.is_visible()]
    assert shown == ["Atlas", "Head", "Picture", "Compare"]
    assert "17 positions" in tab.page.inner_text("header")
    assert not any(one.is_visible() for one in tab.page.locator(".writes").all())
    tab.set(view="head")
    told = tab.page.inner_text(".panel")
    assert "patches apart" in told
    assert "own row" in told
    for word in ("sentence", "same word", "What it writes"):
        assert word not in told
    measures = tab.page.evaluate("headscope.session.reading.header.measures.map(one => one.name)")
    assert measures == ["similarity", "size", "common_mode", "range"]
    tab.set(view="segments")
    assert tab.page.locator(".plate img").is_visible()


def test_range_counts_distance_on_the_grid(
    picture: "hs.PlacedReading", page: str, open_tab: Open
) -> None:
    tab = open_tab(f"{page}#view=head&special=left_out&rule=quantile(0.1)", offline=True)
    said = tab.page.evaluate(
        """async () => {
            const { session } = headscope;
            const { high, all } = await session.pairs(session.reading, 1, 1);
            return [high.distances / high.placed, all.distances / all.placed];
        }"""
    )
    pairs = picture.high_pairs(1, 1, "quantile(0.1)", special="left_out")
    every = picture.positions.distances()[1:, 1:][np.triu_indices(16, 1)]
    assert said == pytest.approx([np.mean(pairs.columns["distance"]), every.mean()])


def test_a_sound_is_drawn_with_its_frames(tmp_path: Path, open_tab: Open) -> None:
    reading = hs.load(wav2vec2()).read((two_tones(), 16_000))
    tab = open_tab(f"{reading.save(tmp_path / 'sound.html').as_uri()}#view=text", offline=True)
    assert tab.page.locator(".patches rect").count() == 50
    assert tab.page.locator(".wave polygon").is_visible()
    tab.page.locator('.patches rect[data-position="10"]').hover()
    assert tab.page.inner_text(".readout b") == "“0.21 s”"
    frame = tab.page.locator(".plate img").bounding_box()
    tenth = tab.page.locator('.patches rect[data-position="10"]').bounding_box()
    middle = (tenth["x"] + tenth["width"] / 2 - frame["x"]) / frame["width"]
    assert middle == pytest.approx(0.21, abs=0.005)


def test_labels_are_text_and_never_markup(tmp_path: Path, open_tab: Open) -> None:
    scope = hs.load(wav2vec2())
    given = scope.read((two_tones(seconds=0.1), 16_000)).given
    labels = [f"<img src=x onerror=alert({n})>" for n in range(5)]
    page = scope.read(given, labels=labels).save(tmp_path / "labels.html")
    tab = open_tab(f"{page.as_uri()}#view=text", offline=True)
    assert [one.inner_text() for one in tab.page.locator(".beside .token").all()] == labels
    assert tab.page.locator("img").count() == 0
