"""Noise: high pairs that nothing seems to relate, and how far related pairs stand above others.

unrelated   high pairs that are unrelated / high pairs; unrelated means different sentence,
            different word, more than 32 tokens apart, neither end special
            chance: the share among all pairs of the same texts
snr         (mean C of related − mean C of unrelated) / std C of unrelated, over all pairs of a
            text; mean over texts
"""

import numpy as np

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio


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
    return {
        "high": seen.high("count"),
        "unrelated": seen.high("unrelated"),
        "unrelated_chance": seen.expected("unrelated"),
        "snr": on_grid(np.where(known, snr, 0)),
        "snr_texts": 1.0 * known,
    }


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    high = sums["high"]
    return {
        "unrelated": Quantity(
            ratio(sums["unrelated"], high), ratio(sums["unrelated_chance"], high)
        ),
        "snr": Quantity(ratio(sums["snr"], sums["snr_texts"])),
    }
