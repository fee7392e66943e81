"""Measures of positions that stand on a grid or in time: range and focus, as they mean there.

Size and selection are those of texts. What needs words or sentences is not here: it is absent from
such a study, not zero.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headscope.measures import focus as of_texts
from headscope.measures import selection, size
from headscope.measures.base import ALL_PAIRS, Definition, Quantity, Sums, ratio
from headscope.study.estimates import Computed

APART = {"patches": "patches_apart", "seconds": "seconds_apart"}  # by the unit of distance
TOWARDS = {
    "special_positions": "what stands nowhere in the picture ([CLS], registers)",
    "silence_added": "the silence that the model adds after a sound",
    "own_patch": "the patch itself",
    "touching_patches": "the up to eight patches that touch it",
    "own_row": "the row of the patch, itself included (of a spectrogram: its band)",
    "own_column": "the column of the patch, itself included (of a spectrogram: its time)",
    "previous_frame": "the frame before",
    "own_frame": "the frame itself",
    "next_frame": "the frame after",
}
KEPT = ("entropy", "confidence", "attended_columns", "sink")  # mean what they mean in a text
OVER = {"entropy": "rows", "confidence": "rows", "attended_columns": "texts"}


@dataclass(frozen=True, slots=True)
class PlacedMeasure:
    """A measure by its sums; `observe` adds these up."""

    name: str
    about: str
    keys: tuple[str, ...]
    definitions: tuple[Definition, ...]
    compute: Callable[[Sums], dict[str, Quantity]]


def compute_range(sums: Sums) -> dict[str, Quantity]:
    """How far apart high pairs are, in the one unit that there is."""
    return {
        name: Quantity(ratio(sums[name], sums["high"]), ratio(sums[f"{name}_chance"], sums["high"]))
        for name in APART.values()
        if name in sums
    }


def compute_focus(sums: Sums) -> dict[str, Quantity]:
    """Where attention goes; a target that is in no input is not there."""
    over = dict.fromkeys(TOWARDS, "rows") | OVER
    found = {
        name: Quantity(ratio(sums[name], sums[below]), ratio(sums[f"{name}_chance"], sums[below]))
        for name, below in over.items()
        if name in sums and sums[f"{name}_chance"].any()
    }
    return found | {"sink": Quantity(ratio(sums["sink"], sums["texts"]))}


def _apart(unit: str, what: str) -> Definition:
    return Definition(
        APART[unit],
        f"mean distance of the two ends of high pairs, {what}; special positions take no part",
        unit,
        "number",
        "longer range",
        ALL_PAIRS,
        "ours",
    )


def _mass(name: str) -> Definition:
    return Definition(
        name,
        f"attention on {TOWARDS[name]}; mean over rows i of Σ_j A_ij",
        "share of attention",
        "percent",
        "attention goes there",
        of_texts.EVEN,
        "ours",
    )


RANGE = PlacedMeasure(
    "range",
    "how far apart the patches or frames of high pairs are",
    ("reading", "special", "rule"),
    (
        _apart("patches", "Euclidean on the grid"),
        _apart("seconds", "in time"),
    ),
    compute_range,
)
FOCUS = PlacedMeasure(
    "focus",
    "where attention goes, how sharp it is and on how few positions it gathers",
    (),
    (
        *(_mass(name) for name in TOWARDS),
        *(one for one in of_texts.MEASURE.definitions if one.name in KEPT),
    ),
    compute_focus,
)

MEASURES: Mapping[str, Computed] = {
    one.name: one for one in (FOCUS, size.MEASURE, selection.MEASURE, RANGE)
}
DEFINITIONS: Mapping[str, Definition] = {
    one.name: one
    for measure in (FOCUS, RANGE)
    for one in measure.definitions
    if one.name not in KEPT
}
"""What every quantity means that texts do not have, by its name."""
