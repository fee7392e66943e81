"""Range: how far apart the tokens of high pairs are.

    mean_distance     Σ |i−j| over high pairs / high pairs      chance: the same over all pairs
    beyond_64, _128   share of high pairs further apart         of the same texts
    median_distance   from the distribution by distance

Distances are exact up to 64; beyond, a pair stands at the middle of its bin, four bins an octave.
The distribution itself is kept without replicates: it has no intervals, and neither has the median.
"""

import numpy as np

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio
from headscope.pairs.distances import LOWER_DISTANCES, UPPER_DISTANCES

MIDDLE = (LOWER_DISTANCES + UPPER_DISTANCES) / 2  # (bins,)
BEYOND = (64, 128)


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    high, everything = seen.high("by_distance"), seen.chance("by_distance")  # (…, bins)
    count, pairs = seen.high("count"), seen.chance("count")
    sums = {
        "high": count,
        "distance": high @ MIDDLE,
        "distance_chance": count * ratio(everything @ MIDDLE, pairs, 0.0),
    }
    for limit in BEYOND:
        far = limit < LOWER_DISTANCES
        sums[f"beyond_{limit}"] = high[..., far].sum(-1)
        sums[f"beyond_{limit}_chance"] = count * ratio(everything[..., far].sum(-1), pairs, 0.0)
    return {name: on_grid(value) for name, value in sums.items()}


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    names = {"mean_distance": "distance"} | {f"beyond_{n}": f"beyond_{n}" for n in BEYOND}
    return {
        name: Quantity(ratio(sums[key], sums["high"]), ratio(sums[f"{key}_chance"], sums["high"]))
        for name, key in names.items()
    }


def profile(seen: SeenPairs) -> dict[str, Values]:
    """By distance (texts, layers, heads, bins): high pairs, chance, all pairs, Σ C over them.

    C is in units of its root mean square in the text, so that texts and heads add up.
    """
    high, everything = seen.high("by_distance"), seen.chance("by_distance")
    share = ratio(everything, seen.chance("count")[..., None], 0.0)
    unit = np.sqrt(np.nan_to_num(seen.pairs("mean") ** 2 + seen.pairs("variance")))
    return {
        "high": high,
        "chance": on_grid(seen.high("count")[..., None] * share),
        "pairs": np.broadcast_to(everything, high.shape),
        "similarity": on_grid(ratio(seen.pairs("sum_by_distance"), unit[..., None], 0.0)),
    }


def median(by_distance: Values) -> Values:
    """The median distance of pairs by distance (…, bins); NaN where there is none."""
    reached = np.cumsum(by_distance, -1)
    half = reached[..., -1:] / 2
    place = np.argmax((reached >= half) & (half > 0), -1)
    return np.where(half[..., 0] > 0, MIDDLE[place], np.nan)
