"""Sums over documents, from which the table of every head is made, each number with its error.

For every relation, signal and head sums of 200 replicates would take gigabytes, so the error of a
ratio of sums is taken to first order from the sums of squares: what the bootstrap over documents
estimates, without drawing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from headscope.effects.structure.questions import Values
from headscope.effects.structure.scores import SCORES
from headscope.effects.structure.signals import SIGNALS, Found, joined
from headscope.measures.base import ratio
from headscope.study.bootstrap import LEVEL

Key = tuple[str, str]  # kind and relation


@dataclass(slots=True)
class Sum:
    """One score of one relation: value / count, summed over windows; (signals, layers, heads)."""

    count: float
    value: Values
    chance: Values
    matched: Values


@dataclass(slots=True)
class Document:
    """What the windows of one document add up to."""

    shape: tuple[int, int]  # layers, heads
    sums: dict[tuple[str, str, str], Sum] = field(default_factory=dict)

    def add(self, layer: int, found: Found) -> None:
        """Add what a layer found in a window."""
        size = (len(SIGNALS), *self.shape)
        for (kind, relation), pair in found.items():
            for score in SCORES:
                key = (kind, relation, score)
                if key not in self.sums:
                    self.sums[key] = Sum(0.0, np.zeros(size), np.zeros(size), np.zeros(size))
                into = self.sums[key]
                into.count += pair[0].counts[score] if layer == 0 else 0
                into.value[:, layer] += joined(pair, "values", score, self.shape[1])
                for what, array in (("chance", into.chance), ("matched", into.matched)):
                    there = score in getattr(pair[0], what)
                    array[:, layer] += joined(pair, what, score, self.shape[1]) if there else np.nan


@dataclass(slots=True)
class Totals:
    """Sums over documents, and of the squares that errors are made from."""

    documents: int = 0
    sums: dict[tuple[str, str, str], "Squares"] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Add a document."""
        self.documents += 1
        for key, own in document.sums.items():
            if own.count:
                self.sums.setdefault(key, Squares()).add(own)

    def merged(self, other: "Totals") -> "Totals":
        """Both together."""
        found = Totals(self.documents + other.documents, dict(self.sums))
        for key, own in other.sums.items():
            found.sums[key] = own.merged(self.sums[key]) if key in self.sums else own
        return found


@dataclass(slots=True)
class Squares:
    """Sums of a score over documents: n, n², x, x², x n, and of its chances."""

    documents: int = 0
    count: float = 0.0
    count_square: float = 0.0
    value: Values | float = 0.0
    square: Values | float = 0.0
    product: Values | float = 0.0
    chance: Values | float = 0.0
    matched: Values | float = 0.0

    def add(self, own: Sum) -> None:
        """Add a document."""
        self.documents += 1
        self.count += own.count
        self.count_square += own.count**2
        self.value = self.value + own.value
        self.square = self.square + own.value**2
        self.product = self.product + own.value * own.count
        self.chance = self.chance + own.chance
        self.matched = self.matched + own.matched

    def merged(self, other: "Squares") -> "Squares":
        """Both together."""
        names = self.__slots__
        return Squares(*(getattr(self, name) + getattr(other, name) for name in names))

    def numbers(self, score: str) -> Mapping[str, Values]:
        """Value, error, interval, chance and matched chance, each (signals, layers, heads)."""
        value = ratio(self.value, self.count)
        spread = self.square - 2 * value * self.product + value**2 * self.count_square
        few = np.nan if self.documents < 2 else self.documents / (self.documents - 1)
        error = np.sqrt(np.maximum(spread, 0) * few) / self.count
        reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * error
        least = -1.0 if score == "beyond_distance" else 0.0
        return {
            "value": value,
            "error": error,
            "low": np.maximum(value - reach, least),
            "high": np.minimum(value + reach, 1.0),
            "chance": ratio(self.chance, self.count),
            "matched": ratio(self.matched, self.count),
        }
