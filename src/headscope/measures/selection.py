"""Selection: whether more than rounding and the size of vectors decides which pairs are high.

Where the highest similarities of a head form a plateau, rounding picks the high pairs among them,
and other batches or another machine pick others: such heads are *unresolved*.
"""

from headscope.compute.arrays import Array
from headscope.measures.base import (
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    all_on_grid,
    ratio,
)
from headscope.pairs.rules import Quantile
from headscope.pairs.vectors import ROUNDED


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    count = observed.high("count")
    sized = isinstance(observed.high_pairs.rule, Quantile)
    found = {
        "high": count,
        # The pair that stands at the threshold, or makes it, is not counted.
        "unresolved": (observed.high("unresolved") - 1).clip(min=0),
        "sized": count * sized,
        "large": observed.high("large"),
        "large_chance": ratio(count * count * sized, observed.chance("count"), 0.0),
    }
    return all_on_grid(found)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    return {
        "unresolved": Quantity(ratio(sums["unresolved"], sums["high"])),
        "explained_by_size": Quantity(
            ratio(sums["large"], sums["sized"]), ratio(sums["large_chance"], sums["sized"])
        ),
    }


MEASURE = Measure(
    "selection",
    "whether more than rounding and the size of vectors decides which pairs are high",
    ("pairs",),
    ("reading", "special", "rule"),
    (
        Definition(
            "unresolved",
            "share of the high pairs that stand no further above the threshold than rounding goes, "
            f"{ROUNDED:g} units in the last place of ‖z_i‖‖z_j‖ (centred: more by as much as the "
            "mean is longer than what is left); the one at the threshold is not counted",
            "share of high pairs",
            "percent",
            "rounding decides which pairs are high",
            "",
            "ours",
        ),
        Definition(
            "explained_by_size",
            "for quantile(q): share of the high pairs that are also among as many pairs of largest "
            "‖z_i‖‖z_j‖",
            "share of high pairs",
            "percent",
            "pairs are high because their vectors are large",
            "the share of high pairs among all pairs of the same texts",
            "ours",
        ),
    ),
    update,
    compute,
)
