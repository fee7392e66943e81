"""Range: how far apart the tokens of high pairs are.

Distances are exact up to 64; beyond, a pair stands at the middle of its bin, four bins an octave.
"""

import numpy as np

from headscope.compute.threads import in_parallel
from headscope.measures.base import (
    ALL_PAIRS,
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    Values,
    on_grid,
    ratio,
)
from headscope.pairs.distances import LOWER_DISTANCES, UPPER_DISTANCES

MIDDLE = (LOWER_DISTANCES + UPPER_DISTANCES) / 2  # (bins,)
BEYOND = (64, 128)


def update(observed: ObservedPairs) -> dict[str, Values]:
    """Contributions of each text."""
    high, everything = observed.high("by_distance"), observed.chance("by_distance")  # (…, bins)
    count, pairs = observed.high("count"), observed.chance("count")
    sums = {
        "high": count,
        "distance": high @ MIDDLE,
        "distance_chance": count * ratio(everything @ MIDDLE, pairs, 0.0),
    }
    for limit in BEYOND:
        far = limit < LOWER_DISTANCES
        sums[f"beyond_{limit}"] = high[..., far].sum(-1)
        sums[f"beyond_{limit}_chance"] = count * ratio(everything[..., far].sum(-1), pairs, 0.0)
    # (texts, layers, heads, bins), and for chance (texts, 1, 1, bins)
    sums["by_distance"] = high
    usual = count.mean((1, 2), keepdims=True)
    sums["by_distance_chance"] = usual[..., None] * ratio(everything, pairs[..., None], 0.0)
    return {name: on_grid(value) for name, value in sums.items()}


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


def profile(observed: ObservedPairs) -> dict[str, Values]:
    """By distance (layers, heads, bins): high pairs, chance, all pairs, Σ C over them.

    C is in units of its root mean square in the text, so that texts and heads add up.
    """
    everything = observed.chance("by_distance")  # (texts, 1, 1, bins)
    share = ratio(everything, observed.chance("count")[..., None], 0.0)
    shape = (len(observed.layers), observed.layers[0].mean.shape[1], everything.shape[-1])
    high, chance, similarity = np.empty((3, *shape))

    def add(layer: int) -> None:
        found = observed.layers[layer]
        own = found.high[observed.rule]
        unit = np.sqrt(np.nan_to_num(found.mean**2 + found.variance))[
            ..., None
        ]  # (texts, heads, 1)
        high[layer] = own.by_distance.sum(0)
        chance[layer] = on_grid(own.count[..., None] * share[:, 0]).sum(0)
        similarity[layer] = on_grid(ratio(found.sum_by_distance, unit, 0.0)).sum(0)

    in_parallel(add, ((layer,) for layer in range(len(observed.layers))))
    pairs = np.broadcast_to(everything.sum(0), shape)
    return {"high": high, "chance": chance, "pairs": pairs, "similarity": similarity}


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
