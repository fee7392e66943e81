"""Size: how long head vectors are, how much they have in common, how many directions they use.

Each is computed for one text and averaged over texts; Z are the vectors of the tokens that count.
"""

from typing import Literal

from headscope.compute.arrays import Array, library, real
from headscope.measures.base import (
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    all_on_grid,
    ratio,
)

WITHOUT_UNIT = ("norm_spread", "common_mode", "effective_rank")


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text. Lengths and similarities have no natural grid."""
    mean, variance = observed.pairs("mean"), observed.pairs("variance")
    some = library(mean).isfinite(mean)
    where, sqrt = library(mean).where, library(mean).sqrt
    mean, variance = where(some, mean, 0.0), where(some, variance, 0.0)
    std = sqrt(variance)
    return {
        "texts": library(mean).ones_like(mean),
        "with_pairs": real(some),
        "norm": observed.vectors["norm"],
        "similarity": mean,
        "similarity_std": std,
        **all_on_grid(
            {
                "contrast": ratio(std, sqrt(mean**2 + variance), 0.0),
                **{name: observed.vectors[name] for name in WITHOUT_UNIT},
            }
        ),
    }


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    over = dict.fromkeys(("norm", *WITHOUT_UNIT), sums["texts"])
    over |= dict.fromkeys(("similarity", "similarity_std", "contrast"), sums["with_pairs"])
    return {name: Quantity(ratio(sums[name], below)) for name, below in over.items()}


def _definition(name: str, says: str, show: Literal["percent", "number"], more: str) -> Definition:
    return Definition(name, f"{says}; mean over texts", "", show, more, "", "ours")


MEASURE = Measure(
    "size",
    "how long head vectors are, how much they have in common, how many directions they use",
    ("pairs", "vectors"),
    ("reading", "special"),
    (
        _definition("norm", "mean ‖z‖, whatever the reading", "number", "longer vectors"),
        _definition(
            "norm_spread",
            "std ‖z‖ / mean ‖z‖, whatever the reading",
            "number",
            "lengths differ more",
        ),
        _definition(
            "common_mode",
            "‖mean z‖ / mean ‖z‖, whatever the reading",
            "percent",
            "vectors are more alike",
        ),
        _definition(
            "effective_rank",
            "exp(H(σ² / Σσ²)), σ the singular values of Z, whatever the reading",
            "number",
            "vectors spread in more directions",
        ),
        _definition("similarity", "mean of C off the diagonal", "number", "higher similarities"),
        _definition(
            "similarity_std",
            "standard deviation of C off the diagonal",
            "number",
            "similarities differ more",
        ),
        _definition(
            "contrast",
            "std C / √(mean C² + var C): 0 where all pairs are alike, 1 where C averages to 0",
            "number",
            "high pairs stand out more",
        ),
    ),
    update,
    compute,
)
