"""Kernel change points: cut a sequence of vectors so that each segment is as alike as possible.

With C the kernel matrix of the units, a segment of n units gains Σ_ij C_ij / n: least squares
around the segment's mean (Arlot, Celisse & Harchaoui 2019). A boundary may bring a worth of its
own. Dynamic programming finds the boundaries of largest total, exactly. C is made a block of
columns at a time, so memory grows with the units and not with their square; with a longest segment
time does too.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.compute.compiled import exact
from headscope.errors import NotPossible

BLOCK = 256  # units whose columns of C are made at once
LONGEST = 2048  # units in a segment; shorter texts are cut exactly
MOST_STATES = 100_000_000  # units × segments that are remembered when the number is given
# Times a penalty, where a number is to be met; the first buys every boundary that there can be.
PENALTIES_TRIED = np.array([-1e4, -4.0, -1.0, -0.25, *np.geomspace(1 / 16, 4, 25)])

Vectors = NDArray[np.float32]  # (units, size); C is their Gram matrix
Worth = NDArray[np.float64]  # (units,): of a boundary before each unit


def cut_into(count: int, vectors: Vectors, worth: Worth, shortest: int = 1) -> list[int]:
    """The best boundaries that cut the units into `count` segments, or as many as can be.

    A boundary is the number of units before it; a segment has at least `shortest` units. In texts
    of more than 2048 units a segment has at most eight times the mean.
    """
    units = len(vectors)
    count = max(1, min(count, most_segments(worth, shortest)))
    if units * count > MOST_STATES:
        raise NotPossible(
            f"{count:,} segments of {units:,} units are too many to find at once. Leave out n and "
            "set granularity, or cut the text into chapters first."
        )
    longest = units if units <= LONGEST else max(LONGEST, 8 * units // count)
    state = _State(units, count + 1)
    for begin, lowest, columns in columns_of(vectors, longest):
        _take_counted(columns, lowest, begin, worth, shortest, longest, *state.arrays)
    return state.walk_back(count, 1)


def cut_with(penalty: float, vectors: Vectors, worth: Worth, shortest: int = 1) -> list[int]:
    """The best boundaries when each costs `penalty`; their number comes out.

    A segment has at least `shortest` and at most 2048 units.
    """
    (cuts,) = cut_with_each([penalty], vectors, worth, shortest)
    return cuts


def cut_with_each(
    penalties: Sequence[float], vectors: Vectors, worth: Worth, shortest: int = 1
) -> list[list[int]]:
    """The same for several penalties in one pass."""
    state = _State(len(vectors), len(penalties))
    state.best[:, 0] = 0.0
    costs = np.array(penalties, dtype=np.float64)
    for begin, lowest, columns in columns_of(vectors, min(len(vectors), LONGEST)):
        _take_penalised(columns, lowest, begin, worth, costs, shortest, LONGEST, *state.arrays)
    return [state.walk_back(row, 0) for row in range(len(penalties))]


def cut_near(
    count: int, penalty: float, vectors: Vectors, worth: Worth, shortest: int = 1
) -> list[int]:
    """Good boundaries that cut the units into `count` segments, in time linear in the units.

    Of the ways to cut that are best at some penalty, near `penalty`, the coarsest that is no
    coarser than asked for; of its boundaries those are dropped that are worth least.
    """
    penalties = penalty * PENALTIES_TRIED
    ways = cut_with_each(list(penalties), vectors, worth, shortest)
    fine = [way for way in ways if len(way) >= count - 1]
    return without_least(fine[-1] if fine else ways[0], count - 1, vectors, worth)


def without_least(cuts: list[int], count: int, vectors: Vectors, worth: Worth) -> list[int]:
    """All but `count` boundaries dropped, one after the other, always the one worth least."""
    kept = list(cuts)
    scores = (gains(vectors, kept) + worth)[kept] if kept else np.zeros(0)
    while len(kept) > count:
        least = int(np.argmin(scores))
        del kept[least]
        scores = np.delete(scores, least)
        for beside in (least - 1, least):  # the segments on both sides of these have changed
            if 0 <= beside < len(kept):
                start = kept[beside - 1] if beside else 0
                end = kept[beside + 1] if beside + 1 < len(kept) else len(vectors)
                here = kept[beside]
                gained = gains(vectors[start:end], [here - start])[here - start]
                scores[beside] = gained + worth[here]
    return kept


def most_segments(worth: Worth, shortest: int = 1) -> int:
    """How many segments there can be: a worth of −∞ says that a place is none for a boundary."""
    count, last = 1, 0
    for place in np.flatnonzero(~np.isneginf(worth)):
        if place - last >= shortest and len(worth) - place >= shortest:
            count, last = count + 1, int(place)
    return count


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

    def __init__(self, units: int, rows: int):  # a row for each number of segments, or penalty
        self.sums = np.zeros(units)  # Σ C over the units from each one to the last taken in
        self.best = np.full((rows, units + 1), -np.inf)
        self.best[0, 0] = 0.0
        self.back = np.zeros((rows, units + 1), dtype=np.int32)

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.sums, self.best, self.back

    def walk_back(self, row: int, step: int) -> list[int]:
        """The boundaries on the best way, first to last; each is `step` rows above the next."""
        at, cuts = len(self.sums), list[int]()
        while at > 0:
            at = int(self.back[row, at])
            cuts.append(at)
            row -= step
        return cuts[-2::-1]


def columns_of(vectors: Vectors, longest: int) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
    """Blocks of columns of C: the first column's unit, the first row's unit, the block."""
    for begin in range(0, len(vectors), BLOCK):
        lowest, end = max(0, begin + 1 - longest), begin + BLOCK
        yield begin, lowest, vectors[lowest:end] @ vectors[begin:end].T


@exact
def grow(column: Any, lowest: int, unit: int, longest: int, sums: Any) -> int:
    """Add one unit to the sums of C over every segment that could end with it."""
    first = max(0, unit + 1 - longest)
    own, beside = float(column[unit - lowest]), 0.0
    sums[unit] = own
    for start in range(unit - 1, first - 1, -1):
        beside += column[start - lowest]
        sums[start] += own + 2.0 * beside
    return first


@exact
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
        first = grow(columns[:, step], lowest, unit, longest, sums)
        for start in range(first, unit + 2 - shortest):
            gain = sums[start] / (unit + 1 - start)
            if start > 0:
                gain += worth[start]
            for count in range(1, best.shape[0]):
                value = best[count - 1, start] + gain
                if value > best[count, unit + 1]:
                    best[count, unit + 1] = value
                    back[count, unit + 1] = start


@exact
def _take_penalised(
    columns: Any,
    lowest: int,
    begin: int,
    worth: Any,
    penalties: Any,
    shortest: int,
    longest: int,
    sums: Any,
    best: Any,
    back: Any,
) -> None:
    for step in range(columns.shape[1]):
        unit = begin + step
        first = grow(columns[:, step], lowest, unit, longest, sums)
        for row in range(len(penalties)):
            for start in range(first, unit + 2 - shortest):
                value = best[row, start] + sums[start] / (unit + 1 - start)
                if start > 0:
                    value += worth[start] - penalties[row]
                if value > best[row, unit + 1]:
                    best[row, unit + 1] = value
                    back[row, unit + 1] = start
