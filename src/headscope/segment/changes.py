"""Kernel change points: cut a sequence of vectors so that each segment is as alike as possible.

With C the kernel matrix of the units, a segment of n units gains Σ_ij C_ij / n: least squares
around the segment's mean (Arlot, Celisse & Harchaoui 2019). A boundary may bring a worth of its
own. Dynamic programming finds the boundaries of largest total, exactly. C is made a block of
columns at a time, so memory grows with the units and not with their square; with a longest segment
time does too.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BLOCK = 256  # units whose columns of C are made at once
LONGEST = 2048  # units in a segment; shorter texts are cut exactly
MOST_STATES = 100_000_000  # units × segments that are remembered when the number is given

Vectors = NDArray[np.float32]  # (units, size); C is their Gram matrix
Worth = NDArray[np.float64]  # (units,): of a boundary before each unit


def cut_into(count: int, vectors: Vectors, worth: Worth, shortest: int = 1) -> list[int]:
    """The best boundaries that cut the units into `count` segments, or as many as can be.

    A boundary is the number of units before it; a segment has at least `shortest` units. In texts
    of more than 2048 units a segment has at most eight times the mean.
    """
    units = len(vectors)
    count = max(1, min(count, units // shortest))
    if units * count > MOST_STATES:
        raise ValueError(
            f"{count:,} segments of {units:,} units are too many to find at once. Leave out n and "
            "set granularity, or cut the text into chapters first."
        )
    longest = units if units <= LONGEST else max(LONGEST, 8 * units // count)
    state = _State(units, count)
    for begin, lowest, columns in _columns(vectors, longest):
        _take_counted(columns, lowest, begin, worth, shortest, longest, *state.arrays)
    return state.walk_back(count)


def cut_with(
    penalty: float,
    vectors: Vectors,
    worth: Worth,
    shortest: int = 1,
    advance: Callable[[int], None] | None = None,
) -> list[int]:
    """The best boundaries when each costs `penalty`; their number comes out.

    A segment has at least `shortest` and at most 2048 units. `advance` is told how many more units
    were taken in.
    """
    units = len(vectors)
    state = _State(units, 1)
    for begin, lowest, columns in _columns(vectors, min(units, LONGEST)):
        _take_penalised(columns, lowest, begin, worth, penalty, shortest, LONGEST, *state.arrays)
        if advance is not None:
            advance(columns.shape[1])
    return state.walk_back(None)


def gains(vectors: Vectors, cuts: list[int]) -> NDArray[np.float64]:
    """What a boundary before each unit gains, its worth apart: (units,), 0 before the first.

    Where there is a boundary: over having the two segments beside it as one. Elsewhere: over the
    segment as it is.
    """
    before = np.zeros((len(vectors) + 1, vectors.shape[1]))
    np.cumsum(vectors, axis=0, out=before[1:])

    def gain(start: int, middle: NDArray[np.int64], end: int) -> NDArray[np.float64]:
        left, right = before[middle] - before[start], before[end] - before[middle]
        whole = before[end] - before[start]
        apart: NDArray[np.float64] = (left**2).sum(axis=1) / (middle - start) + (right**2).sum(
            axis=1
        ) / (end - middle)
        return apart - float(whole @ whole) / (end - start)

    found = np.zeros(len(vectors))
    edges = [0, *cuts, len(vectors)]
    for start, end in pairwise(edges):
        inside = np.arange(start + 1, end)
        found[inside] = gain(start, inside, end)
    for start, middle, end in zip(edges, cuts, edges[2:], strict=False):
        found[middle] = gain(start, np.array([middle]), end)[0]
    return found


class _State:
    """What dynamic programming remembers of the units taken in so far."""

    def __init__(self, units: int, count: int):
        self.sums = np.zeros(units)  # Σ C over the units from each one to the last taken in
        self.best = np.full((count + 1, units + 1), -np.inf)  # by segments used, units taken in
        self.best[0, 0] = 0.0
        self.back = np.zeros((count + 1, units + 1), dtype=np.int32)

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.sums, self.best, self.back

    def walk_back(self, count: int | None) -> list[int]:
        """The boundaries on the best way, first to last."""
        at, row, cuts = len(self.sums), 1 if count is None else count, list[int]()
        while at > 0:
            at = int(self.back[row, at])
            cuts.insert(0, at)
            row -= count is not None
        return cuts[1:]


def _columns(vectors: Vectors, longest: int) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
    """Blocks of columns of C: the first column's unit, the first row's unit, the block."""
    for begin in range(0, len(vectors), BLOCK):
        lowest, end = max(0, begin + 1 - longest), begin + BLOCK
        yield begin, lowest, vectors[lowest:end] @ vectors[begin:end].T


@njit(cache=True)
def _grow(column: Any, lowest: int, unit: int, longest: int, sums: Any) -> int:
    """Add one unit to the sums of C over every segment that could end with it."""
    first = max(0, unit + 1 - longest)
    own, beside = float(column[unit - lowest]), 0.0
    sums[unit] = own
    for start in range(unit - 1, first - 1, -1):
        beside += column[start - lowest]
        sums[start] += own + 2.0 * beside
    return first


@njit(cache=True)
def _take_counted(
    columns: Any,
    lowest: int,
    begin: int,
    worth: Any,
    shortest: int,
    longest: int,
    sums: Any,
    best: Any,
    back: Any,
) -> None:
    for step in range(columns.shape[1]):
        unit = begin + step
        first = _grow(columns[:, step], lowest, unit, longest, sums)
        for start in range(first, unit + 2 - shortest):
            gain = sums[start] / (unit + 1 - start)
            if start > 0:
                gain += worth[start]
            for count in range(1, best.shape[0]):
                value = best[count - 1, start] + gain
                if value > best[count, unit + 1]:
                    best[count, unit + 1] = value
                    back[count, unit + 1] = start


@njit(cache=True)
def _take_penalised(
    columns: Any,
    lowest: int,
    begin: int,
    worth: Any,
    penalty: float,
    shortest: int,
    longest: int,
    sums: Any,
    best: Any,
    back: Any,
) -> None:
    for step in range(columns.shape[1]):
        unit = begin + step
        first = _grow(columns[:, step], lowest, unit, longest, sums)
        for start in range(first, unit + 2 - shortest):
            value = sums[start] / (unit + 1 - start)
            if start > 0:
                value += best[1, start] + worth[start] - penalty
            if value > best[1, unit + 1]:
                best[1, unit + 1] = value
                back[1, unit + 1] = start
