"""Range: how far apart the tokens of high pairs are.

Distances are exact up to 64; beyond, a pair stands at the middle of its bin, four bins an octave.
"""

import numpy as np

from headscope.compute.arrays import Array, constant, library, real
from headscope.compute.threads import by_layer
from headscope.measures.base import (
    ALL_PAIRS,
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    Values,
    all_on_grid,
    on_grid,
    ratio,
)
from headscope.pairs.distances import LOWER_DISTANCES, UPPER_DISTANCES

MIDDLE = (LOWER_DISTANCES + UPPER_DISTANCES) / 2  # (bins,)
BEYOND = (64, 128)


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    high, everything = observed.high("by_distance"), observed.chance("by_distance")  # (…, bins)
    middle = constant(MIDDLE, high)
    count, pairs = observed.high("count"), observed.chance("count")
    sums = {
        "high": count,
        "distance": high @ middle,
        "distance_chance": count * ratio(everything @ middle, pairs, 0.0),
    }
    for limit in BEYOND:
        far = int(np.searchsorted(LOWER_DISTANCES, limit, "right"))  # the first bin beyond
        sums[f"beyond_{limit}"] = high[..., far:].sum(-1)
        sums[f"beyond_{limit}_chance"] = count * ratio(everything[..., far:].sum(-1), pairs, 0.0)
    # (texts, layers, heads, bins), and for chance (texts, 1, 1, bins)
    sums["by_distance"] = high
    usual = count.mean((1, 2), keepdims=True)
    sums["by_distance_chance"] = usual[..., None] * ratio(everything, pairs[..., None], 0.0)
    return all_on_grid(sums)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    names = {"mean_distance": "distance"} | {f"beyond_{n}": f"beyond_{n}" for n in BEYOND}
    found = {
        name: Quantity(ratio(sums[key], sums["high"]), ratio(sums[f"{key}_chance"], sums["high"]))
        for name, key in names.items()
    }
    if "by_distance" not in sums:  # nulls go without
        return found
    value, chance = median(sums["by_distance"]), median(sums["by_distance_chance"])
    found["median_distance"] = Quantity(value, np.broadcast_to(chance, value.shape))
    return found


def profile(observed: ObservedPairs) -> dict[str, Array]:
    """By distance (layers, heads, bins): high pairs, chance, all pairs, Σ C over them.

    C is in units of its root mean square in the text, so that texts and heads add up.
    """
    everything = observed.chance("by_distance")  # (texts, 1, 1, bins)
    share = ratio(everything, observed.chance("count")[..., None], 0.0)
    pairs, own = observed.statistics, observed.high_pairs

    def add(layers: slice) -> tuple[Array, Array, Array]:
        mean, variance = pairs.mean[:, layers], pairs.variance[:, layers]
        maths = library(mean)
        unit = maths.sqrt(maths.nan_to_num(mean**2 + variance))[..., None]  # (texts, …, 1)
        return (
            real(own.by_distance[:, layers]).sum(0),
            on_grid(real(own.count[:, layers])[..., None] * share).sum(0),
            on_grid(ratio(pairs.sum_by_distance[:, layers], unit, 0.0)).sum(0),
        )

    high, chance, similarity = by_layer(add, layers=own.count.shape[1], axis=0, like=everything)
    number = everything.sum(0) + 0 * high
    return {"high": high, "chance": chance, "pairs": number, "similarity": similarity}


def median(by_distance: Values) -> Values:
    """The median distance of pairs by distance (…, bins); NaN where there is none."""
    reached = np.cumsum(by_distance, -1)
    half = reached[..., -1:] / 2
    place = np.argmax((reached >= half) & (half > 0), -1)
    return np.where(half[..., 0] > 0, MIDDLE[place], np.nan)


MEASURE = Measure(
    "range",
    "how far apart the tokens of high pairs are",
    ("pairs",),
    ("reading", "special", "rule"),
    (
        Definition(
            "mean_distance",
            "mean of |i−j| over the high pairs",
            "tokens",
            "number",
            "longer range",
            ALL_PAIRS,
            "paper",
        ),
        *(
            Definition(
                f"beyond_{limit}",
                f"share of the high pairs more than {limit} tokens apart",
                "share of high pairs",
                "percent",
                "longer range",
                ALL_PAIRS,
                "ours",
            )
            for limit in BEYOND
        ),
        Definition(
            "median_distance",
            "median of |i−j| over the high pairs",
            "tokens",
            "number",
            "longer range",
            "the median over all pairs, each text with as many as a head has high ones on average",
            "ours",
        ),
    ),
    update,
    compute,
)
