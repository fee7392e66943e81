"""Noise: high pairs that nothing seems to relate, and how far related pairs stand above others.

unrelated   high pairs that are unrelated / high pairs; unrelated means different sentence,
            different word, more than 32 tokens apart, neither end special
            chance: the share among all pairs of the same texts
snr         (mean C of related − mean C of unrelated) / std C of unrelated, over all pairs of a
            text; mean over texts
scattered   for a rule peak(f), high pairs outside all clusters / high pairs. A cluster is a run
            of tokens all of whose pairs are high, grown greedily along the text: the squares of
            ones on the diagonal of B = [C ≥ f·max], so that this is the cluster noise
            (ΣB − Σ|cluster|²) / ΣB without the diagonal
"""

import numpy as np
from numpy.typing import NDArray

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio


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


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    apart = seen.chance("unrelated")
    near = seen.chance("count") - apart
    far_mean = ratio(seen.pairs("unrelated_sum"), apart)
    far_variance = ratio(seen.pairs("unrelated_square"), apart) - far_mean**2
    # Rounding leaves a variance of about 1e-12 where all similarities are equal.
    alike = far_variance <= 1e-10 * far_mean**2
    spread = np.sqrt(np.where(alike, np.nan, np.maximum(far_variance, 0)))
    snr = (ratio(seen.pairs("related_sum"), near) - far_mean) / spread
    known = np.isfinite(snr)
    clustered, count = seen.clustered, seen.high("count")
    return {
        "high": count,
        "unrelated": seen.high("unrelated"),
        "unrelated_chance": seen.expected("unrelated"),
        "snr": on_grid(np.where(known, snr, 0)),
        "snr_texts": 1.0 * known,
        "scattered": np.zeros_like(snr) if clustered is None else count - clustered,
        "scattered_high": np.zeros_like(snr) if clustered is None else count,
    }


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
