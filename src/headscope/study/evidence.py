"""What a study knows about one view in one mode, as the claims ask for it: with its replicates.

Claims about pairs ask only heads whose pairs stand out: their raw similarities differ at all
(*contrast*; the other readings stretch whatever difference there is, even rounding), and few of
them are within rounding of the threshold (*unresolved*).
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headscope.measures.base import Quantity, ratio
from headscope.measures.registry import MEASURES
from headscope.study.bootstrap import Values
from headscope.study.estimates import measures_of, quantities
from headscope.study.sums import Key, Totals, key_of
from headscope.study.told import View

UNRESOLVED = 0.05  # of its high pairs: more are within rounding of the threshold, and mean nothing
CONTRAST = 0.05  # below, all pairs of a head are alike and the high ones do not stand out


class Evidence:
    """The quantities of one mode in one view, with their replicates."""

    def __init__(self, totals: Totals, mode: str, view: View):
        self.totals, self.mode, self.view = totals, mode, view
        self._known: dict[tuple[str, str], dict[str, Quantity]] = {}

    def key(self, measure: str) -> Key:
        """Where the sums of a measure are."""
        view = self.view
        ways = {"reading": view.reading, "special": view.special, "rule": view.rule}
        keys = measures_of(self.totals)[measure].keys
        return Key(self.mode, measure, *(ways[way] if way in keys else "" for way in ways))

    def has(self, measure: str) -> bool:
        """Whether a measure was taken."""
        known = measure in measures_of(self.totals)
        return known and self.key(measure) in self.totals.sums

    def gives(self, measure: str, name: str) -> bool:
        """Whether a measure was taken and has a quantity of that name."""
        return self.has(measure) and name in quantities(self.totals, self.key(measure), "model")

    def quantity(self, measure: str, name: str, level: str) -> Quantity:
        """A quantity (replicates + 1, layers, heads)."""
        at = (measure, level)
        if at not in self._known:
            self._known[at] = quantities(self.totals, self.key(measure), level)
        return self._known[at][name]

    def layers(self, measure: str, name: str, lift: bool = False) -> Values:
        """A quantity, or its lift, by layer: (replicates + 1, layers)."""
        found = self.quantity(measure, name, "layer")
        value: Values = ratio(found.value, found.chance) if lift else found.value
        return value.reshape(value.shape[:2])

    def heads(self, measure: str, name: str, lift: bool = False) -> Values:
        """A quantity, or its lift, of the heads whose pairs stand out: (replicates + 1, heads)."""
        found = self.quantity(measure, name, "head")
        value: Values = ratio(found.value, found.chance) if lift else found.value
        return value[:, self.stand_out & np.isfinite(value[0])]

    def model(self, measure: str, name: str) -> Quantity:
        """A quantity of the whole model: (replicates + 1,)."""
        found = self.quantity(measure, name, "model")
        chance = None if found.chance is None else found.chance[:, 0, 0]
        return Quantity(found.value[:, 0, 0], chance)

    @property
    def number_of_layers(self) -> int:
        """Layers of the model."""
        return int(next(iter(self._any.values())).shape[1])

    @property
    def _any(self) -> dict[str, Values]:
        return next(held for key, held in self.totals.sums.items() if key.mode == self.mode)

    @cached_property
    def raw_contrast(self) -> Values | None:
        """The contrast of raw similarities by head (layers, heads); None where none were taken."""
        raw = View("raw", self.view.special, self.view.rule)
        key = key_of(MEASURES["size"], self.mode, raw.reading, raw.special, raw.rule)
        if key not in self.totals.sums:
            return None
        found: Values = quantities(self.totals, key, "head")["contrast"].value[0]
        return found

    @cached_property
    def stand_out(self) -> NDArray[np.bool_]:
        """Which heads have high pairs that stand out: (layers, heads)."""
        if self.raw_contrast is None:
            shape = next(iter(self._any.values())).shape[1:]
            return np.zeros(shape, dtype=bool)
        found = np.asarray(self.raw_contrast >= CONTRAST)
        if self.has("selection"):
            found &= ~(self.quantity("selection", "unresolved", "head").value[0] > UNRESOLVED)
        return found

    @cached_property
    def groups(self) -> float:
        """How many groups of like size there are."""
        return number_of_groups(self.totals, self.mode)


def number_of_groups(totals: Totals, mode: str) -> float:
    """How many groups of like size would leave as much to chance as those there are.

    In a replicate a group counts w times, w of mean and variance 1: what its texts add up to
    varies with the sum of the squares of the groups' sizes.
    """
    key = next(key for key in totals.sums if key.mode == mode and key.measure == "size")
    texts: Values = totals.sums[key]["texts"][:, 0, 0]  # as each replicate counts them
    spread = float(np.var(texts[1:]))
    return float(texts[0]) ** 2 / spread if spread > 0 else 1.0


def alone(groups: float) -> bool:
    """Whether there is one group, which says nothing of how another one would differ."""
    return groups < 1.5


def first(curve: Values) -> Values:
    """Mean over the first quarter of the layers: (replicates + 1,)."""
    found: Values = curve[:, : _quarter(curve)].mean(axis=1)
    return found


def last(curve: Values) -> Values:
    """Mean over the last quarter of the layers: (replicates + 1,)."""
    found: Values = curve[:, -_quarter(curve) :].mean(axis=1)
    return found


def _quarter(curve: Values) -> int:
    return max(1, round(int(curve.shape[1]) / 4))
