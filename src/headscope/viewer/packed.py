"""A reading as the viewer receives it: a small JSON header, then every head's vectors as float16.

Similarity is never shipped: the browser computes C = Z Zᵀ itself. The layout of the bytes is
described in docs/server-api.md; the server, the page and the notebook all hand over the same ones.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope import __version__
from headscope.errors import CannotObserve, HeadscopeError
from headscope.text import TokenClass, Tokens

if TYPE_CHECKING:
    from headscope.reading import Reading

MOST_TOKENS = 4096
"""A matrix of so many tokens takes 64 MiB in the browser; beyond it people see only grey."""
MOST_BYTES = 256 * 2**20
ALIGNMENT = 8


class CannotShow(HeadscopeError):  # noqa: N818 - reads as a sentence
    """A reading is too large for a browser."""


def packed(reading: "Reading", *, whole: bool = True) -> bytes:
    """The header's length (4 bytes, little end first), the header, padding, and z as float16.

    z is (layers, heads, tokens, head size). Each head is divided by a power of two, given in the
    header, so that no model's vectors fall out of float16's range; powers of two round nothing.
    Not `whole`, it lacks where attention goes and how the text is cut, which cost more than the
    reading itself: the viewer asks for them when they are looked at.
    """
    _check_size(reading)
    vectors, scales = [], []
    for layer in reading.layers:  # (heads, tokens, head size)
        z = layer.float().numpy()
        scale = _powers_of_two(np.abs(z).max(axis=(1, 2), initial=0))  # (heads,)
        vectors.append((z / scale[:, None, None]).astype("<f2"))
        scales.append(scale.tolist())
    found = _header(reading, scales)
    if whole:
        from headscope.viewer.segmented import packed_segments

        found["focus"] = packed_focus(reading)
        found["segments"] = packed_segments(reading)
    header = json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    header += b" " * (-(4 + len(header)) % ALIGNMENT)
    return b"".join([len(header).to_bytes(4, "little"), header, *(v.tobytes() for v in vectors)])


def packed_attention(reading: "Reading", layer: int, head: int) -> bytes:
    """A_ij of one head (tokens, tokens) as float16 bytes, a row for each reader.

    In a text of several windows a token attends within the window it belongs to, to nothing else.
    """
    size = len(reading.tokens)
    whole = np.zeros((size, size), "<f2")
    for number, window in enumerate(reading.windows):
        weights = reading.attention(layer, head, window=number)
        rows = window.positions[window.own]
        whole[np.ix_(rows, window.positions)] = weights[window.own]
    return whole.tobytes()


def label(name: str) -> str:
    """A model's name as a page may tell it to others: of a path only its last part."""
    path = Path(name)
    return path.name if path.is_absolute() or path.is_dir() or len(path.parts) > 2 else name


def _check_size(reading: "Reading") -> None:
    size, shape = len(reading), reading.scope.shape
    if size > MOST_TOKENS:
        raise CannotShow(
            f"The viewer shows up to {MOST_TOKENS:,} tokens of a text, and this one has {size:,}. "
            "Read a part of it: scope.read(text[:10_000]). A study takes texts of any length."
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


def _header(reading: "Reading", scales: list[list[float]]) -> dict[str, Any]:
    shape, tokens = reading.scope.shape, reading.tokens
    return {
        "format": "headscope reading",
        "version": 1,
        "headscope": __version__,
        "model": {**shape.as_dict(), "name": label(shape.name)},
        "silenced": sorted(reading.scope.silenced),
        "windows": len(reading.windows),
        "scales": scales,
        "classes": [kind.label for kind in TokenClass],
        "tokens": {
            "piece": tokens.pieces,
            "word": tokens.word_texts,
            "word_number": tokens.words.tolist(),
            "word_type": reading.pair_tokens.words.tolist(),
            "before": _before(tokens),
            "shown": _shown(tokens),
            "sentence": tokens.sentences.tolist(),
            "special": tokens.special.tolist(),
            "class": tokens.classes.tolist(),
            "id": tokens.ids.tolist(),
        },
        "after": tokens.text[int(tokens.ends.max(initial=0)) :],
    }


def packed_focus(reading: "Reading") -> dict[str, Any] | None:
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
