"""What is on screen as SVG, PNG and CSV."""

import csv
import io
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from headscope.pair_table import Pair
from viewer.conftest import Tab

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"


def exported(tab: Tab, kind: str, folder: Path) -> bytes:
    with tab.page.expect_download() as waiting:
        tab.page.select_option("select[aria-label=Export]", kind)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.suffix == f".{kind.lower()}"
    return path.read_bytes()


@pytest.mark.parametrize("view", ["head", "compare", "text"])
def test_the_svg_parses_and_holds_the_tokens(
    tab: Tab, reading: hs.Reading, tmp_path: Path, view: str
) -> None:
    tab.set(view=view, layer=3, head=4)
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    assert drawing.tag == f"{SVG}svg"
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    assert set(reading.tokens.pieces) <= set(words)
    if view != "text":
        pictures = [image.get("href") or "" for image in drawing.iter(f"{SVG}image")]
        assert sum(href.startswith("data:image/png;base64,") for href in pictures) >= 2


def test_the_svg_of_the_atlas_holds_every_head(tab: Tab, tmp_path: Path) -> None:
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    assert len(list(drawing.iter(f"{SVG}image"))) == 144
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    assert "L12" in words


@pytest.mark.parametrize("view", ["atlas", "head", "four", "text", "segments", "compare"])
def test_every_word_of_a_drawing_can_be_read_in_print(tab: Tab, tmp_path: Path, view: str) -> None:
    four = {"view": "head", "beside": "raw,cosine,centred"}
    tab.set(layer=3, head=4, **(four if view == "four" else {"view": view}))
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    dots = 2126 / float(drawing.get("width") or 0)  # an inch has 300
    for group in drawing.iter(f"{SVG}g"):
        scale = re.search(r"scale\((.+?)\)", group.get("transform") or "")
        for text in group.iter(f"{SVG}text"):
            text.set("font-size", str(float(text.get("font-size") or 0) * float(scale[1])))
    sizes = [float(text.get("font-size") or 0) * dots for text in drawing.iter(f"{SVG}text")]
    assert len(sizes) > 10
    assert min(sizes) * 72 / 300 > 3.9  # points
    if view in ("head", "four", "compare"):
        tokens = [t for t in drawing.iter(f"{SVG}text") if "rotate" in (t.get("transform") or "")]
        assert min(float(t.get("font-size") or 0) for t in tokens) * dots * 72 / 300 > 5


def test_the_png_has_the_size_of_print(tab: Tab, tmp_path: Path) -> None:
    tab.set(view="head", layer=3, head=4)
    data = exported(tab, "PNG", tmp_path)
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width == 2126  # 180 mm at 300 dots an inch
    assert height > 1500
    assert len(data) > 20_000


def test_the_csv_holds_the_high_pairs_of_the_library(
    tab: Tab, reading: hs.Reading, tmp_path: Path
) -> None:
    tab.set(view="head", layer=3, head=4, rule="quantile(0.1)")
    rows = list(csv.DictReader(io.StringIO(exported(tab, "CSV", tmp_path).decode(), newline="")))
    expected = {(p.first, p.second): p for p in reading.high_pairs(3, 4, "quantile(0.1)")}
    assert list(rows[0]) == list(Pair.__slots__)
    found = {(int(row["first"]), int(row["second"])): row for row in rows}
    assert len(set(found) ^ set(expected)) <= 2
    for place in set(found) & set(expected):
        row, pair = found[place], expected[place]
        assert float(row["similarity"]) == pytest.approx(pair.similarity, rel=5e-3)
        assert (row["first_word"], row["second_word"]) == (pair.first_word, pair.second_word)
        assert int(row["distance"]) == pair.distance
        assert row["same_sentence"] == str(pair.same_sentence).lower()
        assert row["same_word"] == str(pair.same_word).lower()
        assert row["special"] == str(pair.special).lower()


def test_the_csv_of_the_atlas_holds_the_measures(
    tab: Tab, reading: hs.Reading, tmp_path: Path
) -> None:
    tab.until("headscope.views.atlas.measures.size === 144")
    rows = list(csv.DictReader(io.StringIO(exported(tab, "CSV", tmp_path).decode(), newline="")))
    assert len(rows) == 144
    for row in rows[::13]:
        place = int(row["layer"]), int(row["head"])
        C, z = reading.similarity(*place), reading.head_vectors(*place)
        pairs = reading.high_pairs(*place)
        sizes = np.linalg.norm(z, axis=1)
        upper = np.triu_indices(len(C), 1)
        assert float(row["similarity"]) == pytest.approx(C[upper].mean(), rel=0.01, abs=1e-3)
        assert float(row["size"]) == pytest.approx(sizes.mean(), rel=1e-3)
        common = np.linalg.norm(z.mean(0)) / sizes.mean()
        assert float(row["common_mode"]) == pytest.approx(common, rel=5e-3)
        # One pair more or less at the threshold moves a share by so much.
        slack = 1.01 / len(pairs)
        inside = np.mean([pair.same_sentence for pair in pairs])
        assert float(row["same_sentence"]) == pytest.approx(inside, abs=slack)
        repeated = np.mean([pair.same_word for pair in pairs])
        assert float(row["repetition"]) == pytest.approx(repeated, abs=slack)
        far = np.mean([pair.distance for pair in pairs]) / ((len(C) + 1) / 3)
        assert float(row["range"]) == pytest.approx(far, abs=3 * slack)
