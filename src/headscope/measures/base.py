"""What a measure is, and what measures are given: the statistics of every layer for a few texts.

Also the three small operations that measures share: putting contributions on a grid, dividing where
there is something to divide by, and pairing a value with its chance level. `update` is array code
that runs where the statistics are (`compute.arrays`): on the host or on a device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from headscope.attention.statistics import AttentionStatistics
from headscope.compute.arrays import Array, library, on_device, real, stack
from headscope.pairs import HighPairs, PairStatistics, Special, TokenBatch
from headscope.pairs.statistics import of_texts
from headscope.units import Unit

Values: TypeAlias = npt.NDArray[np.float64]
Sums: TypeAlias = Mapping[str, Values]

GRID = 2.0**20
"""Contributions are rounded to multiples of 1 / GRID, so that sums up to 2**33 are exact."""


ALL_PAIRS = "the same over all pairs, weighed by the high pairs of each head and text"
"""The chance level of what is counted over high pairs, in words."""


class Quantity(NamedTuple):
    """A value and what it would be by chance; None where chance says nothing."""

    value: Values
    chance: Values | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """What a quantity means, said once: page, viewer, tooltips and reports have it from here."""

    name: str  # unique among all quantities of all measures
    says: str  # what is computed, in words and maths on one line
    unit: str  # "" for a plain number
    show: Literal["percent", "number"]
    more: str  # what a larger value means
    chance: str  # what the chance level is; "" where chance says nothing
    source: Literal["paper", "summary", "ours"]


@dataclass(frozen=True, eq=False)
class ObservedAttention:
    """Where the attention of every head went in some texts."""

    units: Sequence[Unit]
    statistics: AttentionStatistics  # of all layers: (texts, layers, heads, …)
    causal: bool

    def sums(self, name: str) -> Array:
        """One field of the statistics: (texts, layers, heads, …)."""
        return real(getattr(self.statistics, name))


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """What the pairs of every head in some texts are like, under one reading and one rule."""

    units: Sequence[Unit]
    batch: TokenBatch  # the same tokens, as the pair statistics were given them
    statistics: PairStatistics  # of all layers: (texts, layers, heads, …); chance (texts, …)
    rule: int  # which of the rules that were asked for
    vectors: Mapping[str, Array]  # of `pairs.vector_statistics`: (texts, layers, heads)
    detection: Array  # of `measures.repetition.detection`: (texts, layers, heads)
    seed: int
    clustered: Array | None = None  # high pairs in clusters, for peak rules (see noise.py)
    settings: tuple[Special, ...] | None = None  # of special tokens, where texts came under several
    _known: dict[tuple[str, str], Array] = field(default_factory=dict)

    def apart(self) -> "list[ObservedPairs]":
        """The same for each setting of special tokens, if texts came under several."""
        if self.settings is None:
            return [self]
        found, number = [], len(self.batch)
        for place, special in enumerate(self.settings):
            own = slice(place * number, (place + 1) * number)
            found.append(
                replace(
                    self,
                    statistics=of_texts(self.statistics, own, special),
                    vectors={name: value[own] for name, value in self.vectors.items()},
                    detection=self.detection[own],
                    clustered=None if self.clustered is None else self.clustered[own],
                    settings=None,
                    _known={},
                )
            )
        return found

    @property
    def high_pairs(self) -> HighPairs:
        """What is counted over high pairs."""
        return self.statistics.high[self.rule]

    def pairs(self, name: str) -> Array:
        """One field over all pairs: (texts, layers, heads, …)."""
        return real(getattr(self.statistics, name))

    def high(self, name: str) -> Array:
        """One field over high pairs: (texts, layers, heads, …)."""
        return self._once("high", name, lambda: real(getattr(self.high_pairs, name)))

    def anchors(self, name: str) -> Array:
        """One field of the anchors of high pairs: (texts, layers, heads, kinds)."""
        return getattr(self.high_pairs.anchors, name)

    def chance(self, name: str) -> Array:
        """One field of the text alone: (texts, 1, 1, …)."""
        everything = self.statistics.chance
        return self._once("chance", name, lambda: real(getattr(everything, name))[:, None, None])

    def expected(self, name: str) -> Array:
        """As many pairs as are high, drawn from all pairs of the text: how many are such."""
        count, found = self.high("count"), self.chance(name)
        trailing = (...,) + (None,) * (found.ndim - count.ndim)
        return ratio(count[trailing] * found, self.chance("count")[trailing], 0.0)

    def _once(self, kind: str, name: str, make: Callable[[], Array]) -> Array:
        """What is made the first time that it is asked for."""
        if (kind, name) not in self._known:
            self._known[kind, name] = make()
        return self._known[kind, name]


Observed = TypeVar("Observed", ObservedAttention, ObservedPairs)


@dataclass(frozen=True, slots=True)
class Measure(Generic[Observed]):
    """One finding: its name, what it needs, its quantities, and the two pure functions behind them.

    `update` turns what was observed of some texts into named arrays (texts, layers, heads), which
    add up over texts; `compute` turns such sums, with any axes in front, into the quantities.
    """

    name: str  # of its table, too
    about: str  # one line
    inputs: tuple[Literal["attention", "pairs", "vectors"], ...]
    keys: tuple[Literal["reading", "special", "rule"], ...]  # what its numbers depend on
    definitions: tuple[Definition, ...]  # in the order in which `compute` gives the quantities
    update: Callable[[Observed], dict[str, Array]]
    compute: Callable[[Sums], dict[str, Quantity]]


AnyMeasure: TypeAlias = Measure[ObservedAttention] | Measure[ObservedPairs]


def on_grid(values: Array) -> Array:
    """Round to the grid on which sums are exact, whatever their order."""
    return library(values).round(values * GRID) / GRID


def all_on_grid(contributions: dict[str, Array]) -> dict[str, Array]:
    """Round every one of some contributions; on a device, those of one shape together."""
    found: dict[str, Array] = {}
    for names in of_one_shape(contributions):
        first = contributions[names[0]]
        if on_device(first):
            rounded = on_grid(stack([contributions[name] for name in names], 0))
            found |= dict(zip(names, rounded, strict=True))
        else:
            found |= {name: on_grid(contributions[name]) for name in names}
    return {name: found[name] for name in contributions}


def of_one_shape(arrays: Mapping[str, Array]) -> list[list[str]]:
    """The names of arrays that can be stacked."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, value in arrays.items():
        found.setdefault(tuple(value.shape), []).append(name)
    return list(found.values())


def ratio(above: Array, below: Array, empty: float = np.nan) -> Values:
    """Divide, with `empty` where there is nothing below."""
    where = library(above, below).where
    above, below = real(above), real(below)
    some = below != 0
    divided: Values = where(some, above / where(some, below, 1.0), empty)
    return divided
