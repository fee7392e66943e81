"""What the viewer is handed: the text, tokens and head vectors, whole and in few bytes."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import CannotShow
from headscope.measures.registry import DEFINITIONS
from headscope.viewer.packed import packed, packed_attention
from tiny import byte_level, metaspace, tiny_bert, wordpiece

STATIC = Path(hs.__file__).parent / "viewer" / "static"
HOSTILE = [
    "</script><script>alert(1)</script> & <img src=x onerror=alert(2)>",
    "שלום עולם، مرحبا — bidi \u202e text",
    "👩‍👩‍👧‍👦 naïve café 𝒳 東京",
    "x" * 500,
    "  leading, trailing and\t\ttabs\n\n",
]


def unpacked(data: bytes) -> tuple[dict[str, Any], Any]:
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    model, tokens = header["model"], len(header["tokens"]["id"])
    shape = (model["layers"], model["heads"], tokens, model["head_size"])
    return header, np.frombuffer(data, "<f2", offset=4 + length).reshape(shape)


def test_head_vectors_arrive_to_the_precision_of_float16(tiny: hs.Scope) -> None:
    reading = tiny.read("The keeper lit the lamp, and the lamp burned.")
    header, halves = unpacked(packed(reading))
    for layer in range(1, 4):
        for head in range(1, 5):
            z = reading.head_vectors(layer, head)
            arrived = halves[layer - 1, head - 1] * header["scales"][layer - 1][head - 1]
            assert np.abs(arrived - z).max() <= np.abs(z).max() * 2**-11
            assert np.log2(header["scales"][layer - 1][head - 1]).is_integer()


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_vectors_of_any_size_fit(tiny: hs.Scope, factor: float) -> None:
    reading = tiny.read("The lamp is gone.")
    reading.layers = [layer * factor for layer in reading.layers]
    header, halves = unpacked(packed(reading))
    arrived = halves[1, 2].astype(np.float64) * header["scales"][1][2]
    assert arrived == pytest.approx(reading.head_vectors(2, 3), rel=1e-2, abs=1e-3 * factor)
    assert np.abs(arrived).max() > 0


@pytest.mark.parametrize("make", [wordpiece, byte_level, metaspace])
@pytest.mark.parametrize("text", HOSTILE)
def test_the_tokens_spell_the_text_again(make: Any, text: str) -> None:
    tokenizer = make()
    scope = hs.load(tiny_bert(len(tokenizer)), tokenizer)
    header, _ = unpacked(packed(scope.read(text)))
    tokens = header["tokens"]
    shown = "".join(
        before + ("" if special else part)
        for before, part, special in zip(
            tokens["before"], tokens["shown"], tokens["special"], strict=True
        )
    )
    assert shown + header["after"] == text


def test_a_text_of_several_windows_has_one_matrix_of_attention(tiny: hs.Scope) -> None:
    reading = tiny.read("the lamp and the fog and the sea and the ship " * 9)
    assert len(reading.windows) > 1
    size = len(reading)
    A = np.frombuffer(packed_attention(reading, 2, 3), "<f2").reshape(size, size)
    assert A.sum(axis=1) == pytest.approx(np.ones(size), abs=0.01)
    own = reading.windows[1].positions[reading.windows[1].own]
    first = reading.attention(2, 3, window=1)[reading.windows[1].own]
    assert A[np.ix_(own, reading.windows[1].positions)] == pytest.approx(first, abs=1e-3)


def test_a_folder_is_named_without_where_it_is(tiny: hs.Scope) -> None:
    data = packed(tiny.read("The lamp."))
    assert "/" in tiny.shape.name
    assert tiny.shape.name.encode() not in data
    assert unpacked(data)[0]["model"]["name"] == tiny.shape.name.rsplit("/", 1)[1]


def test_a_text_too_long_for_a_browser_is_refused_with_what_to_do(
    tiny: hs.Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.viewer.packed.MOST_TOKENS", 20)
    with pytest.raises(CannotShow, match=r"up to 20 tokens .* has 82\. Read a part of it"):
        packed(tiny.read("the lamp " * 20))


def test_a_reading_too_large_for_a_browser_is_refused(
    tiny: hs.Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.viewer.packed.MOST_BYTES", 1000)
    with pytest.raises(CannotShow, match=r"up to \d+ tokens fit for this model"):
        packed(tiny.read("The lamp is gone."))


def test_a_family_without_attention_weights_is_shown_without_focus(tiny: hs.Scope) -> None:
    reading = tiny.read("The lamp is gone.")
    header, _ = unpacked(packed(reading))
    assert np.array(header["focus"]["mass"]).shape == (3, 4, len(header["focus"]["targets"]))
    assert "focus" not in unpacked(packed(reading, whole=False))[0]


def test_what_every_head_writes_is_in_a_saved_page(tiny: hs.Scope) -> None:
    reading = tiny.read("The keeper lit the lamp, and the lamp burned.")
    written = unpacked(packed(reading))[0]["writes"]
    for layer, head in ((1, 1), (2, 3), (3, 4)):
        told = reading.writes(layer, head, top=8)
        for side in ("raised", "lowered"):
            shown = written[layer - 1][head - 1][side]
            assert [word for word, _ in shown] == [word for word, _ in getattr(told, side)]
            assert [much for _, much in shown] == pytest.approx(
                [much for _, much in getattr(told, side)], abs=0.006
            )
    assert "writes" not in unpacked(packed(reading, whole=False))[0]


def test_a_vector_that_is_not_a_number_does_not_break_the_header(tiny: hs.Scope) -> None:
    reading = tiny.read("The lamp is gone.")
    reading.layers[0] = torch.full_like(reading.layers[0], float("nan"))
    header, halves = unpacked(packed(reading))
    assert header["scales"][0] == [1.0] * 4
    assert np.isnan(halves[0]).all()
    assert np.isfinite(halves[1]).all()


def test_what_the_page_measures_itself_is_defined_by_the_registry_alone(tiny: hs.Scope) -> None:
    header, _ = unpacked(packed(tiny.read("The keeper lit the lamp.")))
    defined = {one["name"]: one["definition"] for one in header["measures"]}
    assert defined["similarity"] == "mean of C off the diagonal"
    assert defined["range"].startswith(DEFINITIONS["mean_distance"].says)
    assert defined["repetition"] == DEFINITIONS["same_word"].says
    page = "".join(file.read_text("utf-8") for file in STATIC.rglob("*.js"))
    said = {text for one in DEFINITIONS.values() for text in (one.says, one.more, one.chance)}
    assert not [text for text in said if len(text) > 20 and text in page]
    measured = re.search(r"function headMeasures\(.*?return \{(.*?)\n  \};", page, re.DOTALL)
    assert re.findall(r"^    (\w+)", measured[1], re.MULTILINE) == list(defined)
