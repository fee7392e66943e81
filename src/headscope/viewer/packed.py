"""A reading as the viewer receives it: a small JSON header, then every head's vectors as float16.

Similarity is never shipped: the browser computes C = Z Zᵀ itself. The layout of the bytes is
described in docs/server-api.md; the server, the page and the notebook all hand over the same ones.
"""

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope import __version__
from headscope.errors import CannotObserve, CannotShow
from headscope.placed import PlacedReading
from headscope.text import TokenClass, Tokens
from headscope.viewer.placed import placed_header
from headscope.viewer.text_measures import TEXT_MEASURES
from headscope.writing import Written, written_by_all

if TYPE_CHECKING:
    from headscope.reading import Reading

MOST_TOKENS = 4096
"""A matrix of so many tokens takes 64 MiB in the browser; beyond it people see only grey."""
MOST_BYTES = 256 * 2**20
ALIGNMENT = 8
WORDS = 8  # that a head raises most, and lowers
MOST_PRODUCTS = 2**35  # of heads with the vocabulary, for a page: some seconds
SHOWN = (
    "family",
    "stack",
    "causal",
    "layers",
    "numbers",
    "heads",
    "head_size",
    "window",
    "seam",
    "parameters",
)


def packed(reading: "Reading | PlacedReading", *, whole: bool = True) -> bytes:
    """The header's length (4 bytes, little end first), the header, padding, and z as float16.

    z is (layers, heads, tokens, head size). Each head is divided by a power of two, given in the
    header, so that no model's vectors fall out of float16's range; powers of two round nothing.
    Not `whole`, it lacks where attention goes, how the text is cut and what heads write, which cost
    more than the reading itself: the viewer asks for them when they are looked at.
    """
    _check_size(reading)
    vectors, scales = [], []
    for layer in reading.layers:  # (heads, tokens, head size)
        z = layer.float().numpy()
        scale = _powers_of_two(np.abs(z).max(axis=(1, 2), initial=0))  # (heads,)
        vectors.append((z / scale[:, None, None]).astype("<f2"))
        scales.append(scale.tolist())
    found = _about(reading, scales)
    if isinstance(reading, PlacedReading):
        found |= placed_header(reading)
    else:
        found |= _header(reading)
    if whole:
        found["focus"] = packed_focus(reading)
    if whole and not isinstance(reading, PlacedReading):
        from headscope.viewer.segmented import packed_segments

        found["writes"] = _all_writes(reading)
        found["segments"] = packed_segments(reading)
    header = json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % ALIGNMENT)
    return b"".join([len(header).to_bytes(4, "little"), header, *(v.tobytes() for v in vectors)])


def packed_attention(reading: "Reading | PlacedReading", layer: int, head: int) -> bytes:
    """A_ij of one head (tokens, tokens) as float16 bytes, a row for each reader.

    `layer` is counted among the layers that have heads, as the viewer's rows are.
    In a text of several windows a token attends within the window it belongs to, to nothing else.
    """
    size, number_of_layer = len(reading), _number(reading, layer)
    if isinstance(reading, PlacedReading):
        return reading.attention(number_of_layer, head).astype("<f2").tobytes()
    whole = np.zeros((size, size), "<f2")
    for number, window in enumerate(reading.windows):
        weights = reading.attention(number_of_layer, head, window=number)
        rows = window.positions[window.own]
        whole[np.ix_(rows, window.positions)] = weights[window.own]
    return whole.tobytes()


def _number(reading: "Reading | PlacedReading", row: int) -> int:
    """The number of a layer by its row in the viewer, which has a row for each layer with heads."""
    numbers = reading.scope.shape.numbers
    return numbers[row - 1] if 1 <= row <= len(numbers) else row


def label(name: str) -> str:
    """A model's name as a page may tell it to others: of a path only its last part."""
    path = Path(name)
    return path.name if path.is_absolute() or path.is_dir() or len(path.parts) > 2 else name


def _check_size(reading: "Reading | PlacedReading") -> None:
    size, shape = len(reading), reading.scope.shape
    if size > MOST_TOKENS:
        raise CannotShow(
            f"The viewer shows up to {MOST_TOKENS:,} tokens of a text, and this one has {size:,}.",
            python="Read a part of it: scope.read(text[:10_000]). A study takes texts of any "
            "length.",
            command="Read a part of it. headscope study takes texts of any length.",
        )
    needed = 2 * shape.layers * shape.heads * shape.head_size * size
    if needed > MOST_BYTES:
        raise CannotShow(
            f"The head vectors of this reading take {needed / 2**20:,.0f} MiB, more than the "
            f"{MOST_BYTES / 2**20:.0f} MiB a browser is asked to hold. Read a part of the text: "
            f"up to {size * MOST_BYTES // needed:,} tokens fit for this model."
        )


def _powers_of_two(largest: NDArray[np.float32]) -> NDArray[np.float64]:
    """The power of two that brings a largest value to between 1 and 2; 1 where there is none."""
    usable = np.isfinite(largest) & (largest > 0)
    return np.exp2(np.floor(np.log2(np.where(usable, largest, 1).astype(np.float64))))


def _about(reading: "Reading | PlacedReading", scales: list[list[float]]) -> dict[str, Any]:
    """What is told of any reading: the model, and how its vectors are packed."""
    shape = reading.scope.shape
    return {
        "format": "headscope reading",
        "version": 1,
        "headscope": __version__,
        "model": {name: getattr(shape, name) for name in SHOWN} | {"name": label(shape.name)},
        "silenced": sorted(reading.scope.silenced),
        "scales": scales,
    }


def _header(reading: "Reading") -> dict[str, Any]:
    tokens = reading.tokens
    return {
        "windows": len(reading.windows),
        "measures": [measure.packed for measure in TEXT_MEASURES],
        "classes": [kind.label for kind in TokenClass],
        "tokens": {
            "piece": tokens.pieces,
            "word": tokens.word_texts,
            "word_number": tokens.words.tolist(),
            "word_type": tokens.word_types.tolist(),
            "place": _places(tokens),
            "window": reading.token_windows.tolist(),
            "unknown": tokens.unknown.tolist(),
            "before": _before(tokens),
            "shown": _shown(tokens),
            "sentence": tokens.sentences.tolist(),
            "special": tokens.special.tolist(),
            "class": tokens.classes.tolist(),
            "id": tokens.ids.tolist(),
        },
        "marks": [_packed_mark(name, labels) for name, labels in reading.marks.items()],
        "after": tokens.text[int(tokens.ends.max(initial=0)) :],
    }


def _packed_mark(name: str, labels: tuple[str | None, ...]) -> dict[str, Any]:
    """A person's own labels: their names, the most frequent first, and which each token has."""
    names = [one for one, _ in Counter(one for one in labels if one is not None).most_common()]
    numbers = {one: number for number, one in enumerate(names)}
    return {
        "name": name,
        "labels": names,
        "of": [-1 if one is None else numbers[one] for one in labels],
    }


def packed_focus(reading: "Reading | PlacedReading") -> dict[str, Any] | None:
    """Where each head's attention goes; None for a family that does not show it."""
    try:
        focus = reading.focus()
    except CannotObserve:
        return None
    return {
        "targets": focus.targets,
        "mass": focus.mass.round(5).tolist(),  # (layers, heads, targets)
        "chance": focus.chance.round(5).tolist(),
    }


def packed_writes(
    reading: "Reading", layer: int, head: int, position: int | None
) -> dict[str, Any] | None:
    """The words that a head raises and lowers, over the text or at one token; None: as below."""
    try:
        number = _number(reading, layer)
        return _words(reading.writes(number, head, position=position, top=WORDS))
    except CannotObserve:
        return None


def _all_writes(reading: "Reading") -> list[list[dict[str, Any]]] | None:
    """The same over the text for every head; None where it cannot be told, or would take long."""
    shape = reading.scope.shape
    products = len(reading.scope.tokenizer) * shape.head_size * shape.heads
    if shape.layers * shape.heads * products > MOST_PRODUCTS:
        return None
    counts = torch.from_numpy(~reading.tokens.special)
    try:
        means = [layer[:, counts].float().mean(1) for layer in reading.layers]
        found = written_by_all(reading.scope, means, WORDS)
    except CannotObserve:
        return None
    return [[_words(one) for one in layer] for layer in found]


def _words(found: Written) -> dict[str, Any]:
    """Words with how far they are moved; what is no number (of broken weights) is left out."""
    sides = {"raised": found.raised, "lowered": found.lowered}
    return {
        side: [[word, round(much, 2)] for word, much in words if math.isfinite(much)]
        for side, words in sides.items()
    }


def _places(tokens: Tokens) -> list[int]:
    """Where in its word each piece begins, as JavaScript counts; -1 if it is no part of one."""
    return [
        -1 if place < 0 else len(word[:place].encode("utf-16-le")) // 2
        for word, place in zip(tokens.word_texts, tokens.places_in_words.tolist(), strict=True)
    ]


def _before(tokens: Tokens) -> list[str]:
    """What of the text stands between each token and all before it: white space, as a rule."""
    gaps, at = [], 0
    for start, end, special in zip(tokens.starts, tokens.ends, tokens.special, strict=True):
        gaps.append("" if special else tokens.text[at : max(int(start), at)])
        at = at if special else max(at, int(end))
    return gaps


def _shown(tokens: Tokens) -> list[str]:
    """What each token adds to the text as it is shown; "" where pieces share one character."""
    parts, at = [], 0
    for i, (start, end) in enumerate(zip(tokens.starts, tokens.ends, strict=True)):
        if tokens.special[i]:
            parts.append(tokens.symbols[i])
        else:
            parts.append(tokens.text[max(int(start), at) : int(end)])
            at = max(at, int(end))
    return parts
