"""A text cut into topics at every granularity, as the viewer receives it: a slider needs no model.

The units are read once; cutting them again costs next to nothing. Few granularities cut
differently, so each way of cutting is told once. docs/server-api.md describes the fields.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.segment.segmenter import default_segmenter
from headscope.segment.topics import cut_units, explain
from headscope.segment.units import unit_spans

if TYPE_CHECKING:
    from headscope.reading import Reading

GRANULARITIES = tuple(round(float(2**step), 3) for step in np.linspace(-3, 3, 25))
MOST_UNITS = 1000  # whose kernel is handed over: two megabytes
TOLD_HEADS = 12


def packed_segments(reading: "Reading") -> dict[str, Any]:
    """Where the text's topics turn, at each granularity, and why."""
    scope, tokens = reading.scope, reading.tokens
    segmenter, spans = default_segmenter(scope), unit_spans(tokens.text)
    said: dict[str, Any] = {
        "made_from": segmenter.made_from,
        "penalty": segmenter.penalty,
        "granularities": GRANULARITIES,
        "starts": _first_tokens(reading, spans),
    }
    if len(spans) < 2:
        nothing = {"cuts": [], "gain": [0.0] * len(spans), "heads": []}
        return {
            **said,
            "worth": [0.0] * len(spans),
            "ways": [nothing],
            "way": [0] * len(GRANULARITIES),
            "kernel": [1000] * len(spans),
        }
    vectors, worth = segmenter.read(scope, [tokens.text[start:end] for start, end in spans])
    ways: dict[tuple[int, ...], int] = {}
    way = []
    for granularity in GRANULARITIES:
        cuts = tuple(cut_units(vectors, worth, segmenter, granularity=granularity))
        way.append(ways.setdefault(cuts, len(ways)))
    told = []
    for cuts in ways:
        why = explain(spans, list(cuts), vectors, worth, segmenter)
        heads = [[layer, head, round(share, 4)] for layer, head, share in why.heads[:TOLD_HEADS]]
        told.append({"cuts": cuts, "gain": why.similarity.round(4).tolist(), "heads": heads})
    return {
        **said,
        "worth": worth.round(4).tolist(),
        "ways": told,
        "way": way,
        "kernel": _kernel(vectors),
    }


def _first_tokens(reading: "Reading", spans: list[tuple[int, int]]) -> list[int]:
    """The position of each unit's first token: the first that ends after the unit begins."""
    own = np.flatnonzero(~reading.tokens.special)
    ends = np.maximum.accumulate(reading.tokens.ends[own])
    places = np.searchsorted(ends, [start for start, _ in spans], side="right")
    found: list[int] = own[np.minimum(places, len(own) - 1)].tolist()
    return found


def _kernel(vectors: NDArray[np.float32]) -> list[int] | None:
    """How alike every two units are, in thousandths: the upper triangle, row after row."""
    if len(vectors) > MOST_UNITS:
        return None
    whole = vectors @ vectors.T
    found: list[int] = np.rint(1000 * whole[np.triu_indices(len(whole))]).astype(int).tolist()
    return found
