"""Sentence: whether high pairs stay inside one sentence."""

from headscope.compute.arrays import Array
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


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    found = {
        "high": observed.high("count"),
        "same": observed.high("same_sentence"),
        "same_chance": observed.expected("same_sentence"),
        "same_matched": observed.high("same_sentence_expected"),
    }
    return all_on_grid(found)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    share = ratio(sums["same"], sums["high"])
    return {
        "same_sentence": Quantity(share, ratio(sums["same_chance"], sums["high"])),
        "same_sentence_matched": Quantity(share, ratio(sums["same_matched"], sums["high"])),
    }


MEASURE = Measure(
    "sentence",
    "whether high pairs stay inside one sentence",
    ("pairs",),
    ("reading", "special", "rule"),
    (
        Definition(
            "same_sentence",
            "share of the high pairs inside one sentence",
            "share of high pairs",
            "percent",
            "pairs stay in a sentence",
            ALL_PAIRS,
            "paper",
        ),
        Definition(
            "same_sentence_matched",
            "the same share, beside what the distances of the high pairs alone would give",
            "share of high pairs",
            "percent",
            "pairs stay in a sentence",
            "the share expected if only the distances of the high pairs were kept",
            "ours",
        ),
    ),
    update,
    compute,
)
