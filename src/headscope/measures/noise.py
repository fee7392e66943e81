"""Noise: high pairs that nothing seems to relate, and how far related pairs stand above others.

A cluster is a run of tokens all of whose pairs are high, grown greedily along the text: the squares
of ones on the diagonal of B = [C ≥ f·max]. So the share of high pairs outside all clusters is the
cluster noise (ΣB − Σ|cluster|²) / ΣB without the diagonal.
"""

import numpy as np
from numpy.typing import NDArray

from headscope.compute.arrays import Array, library, real
from headscope.measures.base import (
    ALL_PAIRS,
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    all_on_grid,
    ratio,
)
from headscope.pairs.tokens import UNRELATED_DISTANCE


def clustered_pairs(vectors: NDArray[np.float32], threshold: float) -> int:
    """Pairs inside the clusters of one head in one text, from read vectors (tokens, d)."""
    pairs, first = 0, 0
    for place in range(1, len(vectors) + 1):
        inside = place < len(vectors) and bool(
            (vectors[first:place] @ vectors[place] >= threshold).all()
        )
        if not inside:
            size = place - first
            pairs += size * (size - 1) // 2
            first = place
    return pairs


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    apart = observed.chance("unrelated")
    near = observed.chance("count") - apart
    far_mean = ratio(observed.pairs("unrelated_sum"), apart)
    far_variance = ratio(observed.pairs("unrelated_square"), apart) - far_mean**2
    where, sqrt = library(apart).where, library(apart).sqrt
    # Rounding leaves a variance of about 1e-12 where all similarities are equal.
    alike = far_variance <= 1e-10 * far_mean**2
    spread = sqrt(where(alike, np.nan, far_variance.clip(min=0)))
    snr = (ratio(observed.pairs("related_sum"), near) - far_mean) / spread
    known = library(snr).isfinite(snr)
    clustered, count, none = (
        observed.clustered,
        observed.high("count"),
        0.0 * observed.high("count"),
    )
    found = {
        "high": count,
        "unrelated": observed.high("unrelated"),
        "unrelated_chance": observed.expected("unrelated"),
        "snr": where(known, snr, 0.0),
        "snr_texts": real(known),
        "scattered": none if clustered is None else count - clustered,
        "scattered_high": none if clustered is None else count,
    }
    return all_on_grid(found)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    high = sums["high"]
    return {
        "unrelated": Quantity(
            ratio(sums["unrelated"], high), ratio(sums["unrelated_chance"], high)
        ),
        "snr": Quantity(ratio(sums["snr"], sums["snr_texts"])),
        "scattered": Quantity(ratio(sums["scattered"], sums["scattered_high"])),
    }


MEASURE = Measure(
    "noise",
    "high pairs that nothing seems to relate, and how far related pairs stand above others",
    ("pairs", "vectors"),
    ("reading", "special", "rule"),
    (
        Definition(
            "unrelated",
            "share of the high pairs that are unrelated: different sentence, different word, more "
            f"than {UNRELATED_DISTANCE} tokens apart, neither end special",
            "share of high pairs",
            "percent",
            "more noise",
            ALL_PAIRS,
            "summary",
        ),
        Definition(
            "snr",
            "(mean C of related pairs − mean C of unrelated ones) / std C of unrelated ones, over "
            "all pairs of a text; mean over texts",
            "standard deviations",
            "number",
            "related pairs stand out more",
            "",
            "summary",
        ),
        Definition(
            "scattered",
            "for peak(f): share of the high pairs outside all clusters, the all-ones squares grown "
            "greedily along the diagonal of [C ≥ f·max]",
            "share of high pairs",
            "percent",
            "more noise",
            "",
            "summary",
        ),
    ),
    update,
    compute,
)
