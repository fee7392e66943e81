"""Segmenter files from anywhere: used if they are whole, refused by name and field if not."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.errors import CannotRead
from headscope.segment.segmenter import Segmenter, late_heads
from headscope.segment.segmenter_file import FORMAT, fields
from headscope.segment.sides import COMPARISONS
from hostile.commands import refused

TEXT = "The keeper lit the lamp at dusk. A ship passed. Bread is baked of flour. The oven is hot."
HEADS = 3 * 4


def whole() -> dict[str, Any]:
    """A file that can be used with the tiny model."""
    return {
        "format": FORMAT,
        "model": "tiny",
        "shape": [3, 4, 8],
        "made_from": "a test",
        "penalty": 1.5,
        "shortest": 1,
        "kernel": [{"layer": a, "head": b, "weight": w} for a, b, w in late_heads(3, 4)],
        "starts": [[0.1] * 8] * HEADS,
        "ends": [[0.2] * 8] * HEADS,
        "sides": [[0.3] * COMPARISONS] * HEADS,
    }


def kernel(**values: Any) -> dict[str, Any]:
    return {"kernel": [{"layer": 1, "head": 1, "weight": 1.0} | values]}


NAN, INFINITE = float("nan"), float("inf")
WRONG: list[tuple[str, Any, str]] = [
    ("nothing", b"", "not JSON"),
    ("half a file", b'{"format": ', "not JSON"),
    ("bytes", b"\xff\xfe\x00", "not JSON"),
    ("a deep list", b"[" * 100_000, "not JSON"),
    ("a number of 5,000 digits", b"9" * 5_000, "not JSON"),
    ("null", b"null", "format"),
    ("a list", b"[]", "format"),
    ("a word", b'"segmenter"', "format"),
    ("an object of nothing", b"{}", "format"),
    ("another format", {"format": "headscope segmenter 1"}, "format"),
    ("a format that is a list", {"format": [FORMAT]}, "format"),
    ("no model", {"model": None}, "model is no text"),
    ("a model that is a number", {"model": 7}, "model is no text"),
    ("no source", {"made_from": {}}, "made_from is no text"),
    ("no shape", {"shape": None}, "shape"),
    ("a shape of two", {"shape": [3, 4]}, "shape"),
    ("a shape of nothing", {"shape": [0, 0, 0]}, "shape"),
    ("a negative shape", {"shape": [-3, 4, 8]}, "shape"),
    ("a shape in words", {"shape": ["3", "4", "8"]}, "shape"),
    ("a shape of fractions", {"shape": [3.5, 4, 8]}, "shape"),
    ("a shape of truths", {"shape": [True, True, True]}, "shape"),
    ("a huge shape", {"shape": [10**9, 10**9, 10**9]}, "shape"),
    ("another shape", {"shape": [3, 4, 9]}, "starts is not 12 lists of 9"),
    ("no penalty", {"penalty": None}, "penalty"),
    ("a penalty that is NaN", {"penalty": NAN}, "holds NaN"),
    ("a penalty without end", {"penalty": INFINITE}, "holds Infinity"),
    ("a penalty below all", {"penalty": -INFINITE}, "holds -Infinity"),
    ("a penalty too large", {"penalty": 1e300}, "penalty"),
    ("a penalty of 400 digits", {"penalty": 10**400}, "penalty"),
    ("a penalty in words", {"penalty": "much"}, "penalty"),
    ("a penalty that is true", {"penalty": True}, "penalty"),
    ("segments of nothing", {"shortest": 0}, "shortest"),
    ("segments of less", {"shortest": -1}, "shortest"),
    ("segments of halves", {"shortest": 1.5}, "shortest"),
    ("no kernel", {"kernel": None}, "kernel"),
    ("an empty kernel", {"kernel": []}, "kernel"),
    ("a kernel of numbers", {"kernel": [1, 2]}, "kernel"),
    ("a kernel of nothing", {"kernel": [{}]}, "kernel's layer"),
    ("layer 0", kernel(layer=0), "kernel's layer"),
    ("layer 4 of 3", kernel(layer=4), "kernel's layer"),
    ("layer -1", kernel(layer=-1), "kernel's layer"),
    ("layer 1.5", kernel(layer=1.5), "kernel's layer"),
    ("head 0", kernel(head=0), "kernel's head"),
    ("head 5 of 4", kernel(head=5), "kernel's head"),
    ("a head in words", kernel(head="one"), "kernel's head"),
    ("a weight that is NaN", kernel(weight=NAN), "holds NaN"),
    ("a weight without end", kernel(weight=INFINITE), "holds Infinity"),
    ("a negative weight", kernel(weight=-1), "negative"),
    ("a weight of nothing", kernel(weight=0), "nothing"),
    ("a head twice", {"kernel": 2 * kernel()["kernel"]}, "twice"),
    ("no starts", {"starts": None}, "some and not all"),
    ("starts of nothing", {"starts": []}, "starts is not"),
    ("starts that are ragged", {"starts": [[0.1] * 8] * 11 + [[0.1]]}, "starts is not"),
    ("starts in words", {"starts": [["a"] * 8] * 12}, "starts"),
    ("starts that are NaN", {"starts": [[NAN] * 8] * 12}, "holds NaN"),
    ("ends without end", {"ends": [[INFINITE] * 8] * 12}, "holds Infinity"),
    ("ends beyond float32", {"ends": [[1e39] * 8] * 12}, "ends"),
    ("ends that are a number", {"ends": 7}, "ends is not"),
    ("sides of another width", {"sides": [[0.3] * 99] * 12}, "sides is not"),
]
MISSING = [name for name in whole() if name not in ("starts", "ends", "sides")]


def file_of(what: Any, place: Path) -> Path:
    data = what if isinstance(what, bytes) else json.dumps(whole() | what).encode()
    place.write_bytes(data)
    return place


@pytest.mark.parametrize(("what", "content", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_a_broken_segmenter_is_refused_in_a_sentence(
    place: Path, tmp_path: Path, what: str, content: Any, says: str
) -> None:
    file = file_of(content, tmp_path / "segmenter.json")
    options = ("-m", place / "model", "--segmenter", file)
    refused("segment", TEXT, *options, says=says)
    with pytest.raises(CannotRead, match=r"segmenter\.json"):
        Segmenter.load(file)


@pytest.mark.parametrize("name", MISSING)
def test_a_segmenter_without_a_field_is_refused(name: str) -> None:
    found = whole()
    del found[name]
    with pytest.raises(CannotRead, match="'mine' is no segmenter"):
        fields(json.dumps(found).encode(), "mine")


def test_a_whole_segmenter_cuts(tiny: hs.Scope, tmp_path: Path) -> None:
    learned = {} | dict.fromkeys(("starts", "ends", "sides"))
    for content in ({}, learned):
        segments = tiny.segment(TEXT, segmenter=file_of(content, tmp_path / "segmenter.json"))
        assert "".join(segments) == TEXT


def test_a_segmenter_for_another_model_is_refused(place: Path, tmp_path: Path) -> None:
    content = {"shape": [2, 2, 2], "model": "B" * 100_000, **kernel()}
    content |= dict.fromkeys(("starts", "ends", "sides"))
    file = file_of(content, tmp_path / "segmenter.json")
    began = time.monotonic()
    refused("segment", TEXT, "-m", place / "model", "--segmenter", file, says="BB…BB")
    assert time.monotonic() - began < 20  # 144 s were seen


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(list(whole())), ANYTHING, max_size=3))
def test_whatever_stands_in_a_field_is_refused_or_of_use(changes: dict[str, Any]) -> None:
    try:
        made = Segmenter(**fields(json.dumps(whole() | changes).encode(), "mine"))
    except CannotRead:
        return
    assert made.kernel
    assert all(weight >= 0 for _, _, weight in made.kernel)


@settings(deadline=None, max_examples=150)
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    with pytest.raises(CannotRead, match="'mine' is no segmenter"):
        fields(data, "mine")
