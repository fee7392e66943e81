"""A text cut into topics at every granularity, as the viewer receives it: a slider needs no model.

The units are read once; cutting them again costs next to nothing. Few granularities cut
differently, so each way of cutting is told once. docs/server-api.md describes the fields.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.segment.segmenter import default_segmenter
from headscope.segment.topics import explain_at

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.segment.segments import Explanation

GRANULARITIES = tuple(round(float(2**step), 3) for step in np.linspace(-3, 3, 25))
MOST_UNITS = 1000  # whose kernel is handed over: two megabytes
TOLD_HEADS = 12


def packed_segments(reading: "Reading") -> dict[str, Any]:
    """Where the text's topics turn, at each granularity, and why."""
    segmenter = default_segmenter(reading.scope)
    found = explain_at(reading.scope, reading.tokens.text, segmenter, GRANULARITIES)
    ways = list({why.cuts: why for why in found}.values())
    cuts = [why.cuts for why in ways]
    return {
        "made_from": segmenter.made_from,
        "granularities": GRANULARITIES,
        "starts": _first_tokens(reading, found[0]),
        "way": [cuts.index(why.cuts) for why in found],
        "ways": [
            {
                "cuts": why.cuts,
                "price": round(why.price, 4),
                "scores": why.scores.round(4).tolist(),
                "heads": [
                    [layer, head, round(share, 4)] for layer, head, share in why.heads[:TOLD_HEADS]
                ],
            }
            for why in ways
        ],
        "learned": found[0].start.round(4).tolist(),
        "layout": _layout(found[0]),
        "kernel": _kernel(found[0]),
    }


def _first_tokens(reading: "Reading", why: "Explanation") -> list[int]:
    """The position of each unit's first token: the first that ends after the unit begins."""
    own = np.flatnonzero(~reading.tokens.special)
    ends = np.maximum.accumulate(reading.tokens.ends[own])
    places = np.searchsorted(ends, [start for start, _ in why.spans], side="right")
    found: list[int] = own[np.minimum(places, len(own) - 1)].tolist()
    return found


def _layout(why: "Explanation") -> list[float | None]:
    """What the layout adds to the worth of a boundary before each unit; None where none may be."""
    layout = np.zeros(len(why.spans)) if why.layout is None else why.layout
    return [None if np.isneginf(worth) else round(float(worth), 4) for worth in layout]


def _kernel(why: "Explanation") -> list[int] | None:
    """How alike every two units are, in thousandths: the upper triangle, row after row."""
    if len(why.spans) > MOST_UNITS:
        return None
    upper = np.triu_indices(len(why.spans))
    found: list[int] = np.rint(1000 * why.kernel[upper]).astype(int).tolist()
    return found
