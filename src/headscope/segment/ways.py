"""All ways to cut a text, each with its probability: how many segments are expected of them.

A way to cut is the likelier, the more its segments gain and its boundaries are worth, each of them
costing a price. The number of boundaries of the single best way jumps where a little less price
buys many at once; the mean over all ways does not, and `granularity` multiplies it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.compute.compiled import exact
from headscope.segment.changes import (
    LONGEST,
    Vectors,
    Worth,
    columns_of,
    grow,
    most_segments,
)

FEWEST = 0.25  # boundaries expected of any text: one where all are alike is cut at granularity 2
PRICES = np.geomspace(4, 1 / 16, 25)  # times the penalty

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ways:
    """All ways to cut some units; of probability exp(sharpness × total), the total less prices."""

    vectors: Vectors
    worth: Worth  # of a boundary before each unit; −∞ where there can be none
    penalty: float  # the price of a boundary at granularity 1
    sharpness: float
    shortest: int = 1

    def segments(self, granularity: float) -> int:
        """The number of segments: twice as many boundaries at granularity 2 as at 1."""
        most = most_segments(self.worth, self.shortest)
        return 1 + int(min(granularity * self._at_penalty + 0.5, most - 1))

    def price(self, count: int) -> float:
        """What a boundary costs where as many are expected as `count` segments have."""
        if count == self.segments(1.0):
            return self.penalty
        return float(np.interp(count - 1, self._by_price, self._prices))

    @property
    def _prices(self) -> Numbers:
        return self.penalty * PRICES

    @cached_property
    def _at_penalty(self) -> float:
        return max(FEWEST, float(self._expected(np.array([self.penalty]))[0]))

    @cached_property
    def _by_price(self) -> Numbers:
        return self._expected(self._prices)

    def _expected(self, prices: Numbers) -> Numbers:
        """The mean number of boundaries at each price."""
        units = len(self.vectors)
        sums = np.zeros(units)
        weights = np.full((len(prices), units + 1), -np.inf)
        weights[:, 0] = 0.0
        mean = np.zeros((len(prices), units + 1))
        for begin, lowest, columns in columns_of(self.vectors, min(units, LONGEST)):
            _take(
                columns, lowest, begin, self.worth, prices, self.sharpness, self.shortest,
                LONGEST, sums, weights, mean,
            )  # fmt: skip
        found: Numbers = mean[:, -1]
        return found


@exact
def _take(
    columns: Any,
    lowest: int,
    begin: int,
    worth: Any,
    prices: Any,
    sharpness: float,
    shortest: int,
    longest: int,
    sums: Any,
    weights: Any,
    mean: Any,
) -> None:
    """Take in units: the log of the summed weights of all ways to cut them, and the mean number."""
    for step in range(columns.shape[1]):
        unit = begin + step
        first = grow(columns[:, step], lowest, unit, longest, sums)
        for row in range(len(prices)):
            before, most = weights[row], -np.inf
            for start in range(first, unit + 2 - shortest):
                gain = sums[start] / (unit + 1 - start)
                if start > 0:
                    gain += worth[start] - prices[row]
                most = max(most, before[start] + sharpness * gain)
            if most == -np.inf:
                continue
            weight, boundaries = 0.0, 0.0
            for start in range(first, unit + 2 - shortest):
                gain = sums[start] / (unit + 1 - start)
                if start > 0:
                    gain += worth[start] - prices[row]
                way = before[start] + sharpness * gain - most
                if way > -40.0:
                    weight += np.exp(way)
                    boundaries += np.exp(way) * (mean[row, start] + (start > 0))
            before[unit + 1] = most + np.log(weight)
            mean[row, unit + 1] = boundaries / weight
