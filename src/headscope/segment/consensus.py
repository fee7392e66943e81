"""The consensus of all ways to cut a text into a given number of segments.

The single best way to cut is often one of many that are nearly as good and differ from it. So each
way has a probability, exp(SHARPNESS × its total) over the sum of all, the total being what its
segments gain and its boundaries are worth (`changes.py`). Taken is the way that is expected to
agree most with one drawn from these: to share its boundaries, and to say the same as it of two
units half a mean segment apart, whether they are in one segment (which is what Pk asks).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.compute.compiled import exact
from headscope.segment.changes import LONGEST, Vectors, Worth, cut_into, most_segments

SHARPNESS = 1.5
PAIRS = 4.0  # what agreement on pairs of units counts against agreement on boundaries
MOST_STEPS = 400_000_000  # units² × segments: a few seconds

Matrix = NDArray[np.float64]


def agree_into(count: int, vectors: Vectors, worth: Worth, shortest: int = 1) -> list[int]:
    """The boundaries that agree most with all ways to cut the units into `count` segments.

    As `cut_into`, which it leaves texts to that are too long for it (more than 2048 units, or
    more than 4 × 10⁸ units² × segments).
    """
    units = len(vectors)
    count = max(1, min(count, most_segments(worth, shortest)))
    if count == 1 or units > LONGEST or units**2 * count > MOST_STEPS:
        return cut_into(count, vectors, worth, shortest)
    boundary, together, apart = expected(count, vectors, worth, shortest)
    agreement = PAIRS * (2 * together - 1) / max(len(together), 1)
    sums = np.concatenate([[0.0], np.cumsum(agreement)])
    boundary[np.isneginf(worth)] = -np.inf  # no place for one, however well the pairs agree
    return [int(cut) for cut in _most(sums, boundary / (count - 1), apart, count, shortest)]


def expected(count: int, vectors: Vectors, worth: Worth, shortest: int) -> tuple[Worth, Worth, int]:
    """Over all ways to cut into `count` segments: the probability of a boundary before each unit.

    And that each unit is in one segment with the unit half a mean segment after it; how far that
    is comes third.
    """
    units = len(vectors)
    apart = max(1, round(units / count / 2))
    total = _totals(vectors, worth) * SHARPNESS
    before = _ways(total, count, shortest)
    after = _ways(total[::-1, ::-1].T, count, shortest)[:, ::-1]
    boundary, change = np.zeros(units), np.zeros(units + 1)
    _sum_segments(total, before, after, shortest, apart, boundary, change)
    boundary[0] = 0.0
    return boundary, np.cumsum(change)[: max(units - apart, 0)], apart


def _totals(vectors: Vectors, worth: Worth) -> Matrix:
    """What the segment from each unit to before each other gains, its first boundary's worth in."""
    units = len(vectors)
    sums = np.zeros((units + 1, units + 1))
    sums[1:, 1:] = (vectors @ vectors.T).cumsum(axis=0, dtype=np.float64).cumsum(axis=1)
    corner, place = np.diag(sums), np.arange(units + 1)
    inside = corner[None, :] - sums - sums.T + corner[:, None]
    gained = inside / np.maximum(place[None, :] - place[:, None], 1)
    gained[1:units] += worth[1:, None]
    found: Matrix = gained
    return found


@exact
def _ways(total: Any, count: int, shortest: int) -> Any:
    """The log of the summed weights of all ways to cut what is before each place, by segments."""
    places = len(total)
    found = np.full((count + 1, places), -np.inf)
    found[0, 0] = 0.0
    for used in range(1, count + 1):
        for end in range(used * shortest, places):
            most = -np.inf
            for start in range(end - shortest + 1):
                most = max(most, found[used - 1, start] + total[start, end])
            if most > -np.inf:
                weight = 0.0
                for start in range(end - shortest + 1):
                    weight += np.exp(found[used - 1, start] + total[start, end] - most)
                found[used, end] = most + np.log(weight)
    return found


@exact
def _sum_segments(
    total: Any, before: Any, after: Any, shortest: int, apart: int, boundary: Any, change: Any
) -> None:
    """Add the probability of every segment to its first unit, and to the pairs inside it."""
    count, places = before.shape[0] - 1, before.shape[1]
    every = before[count, places - 1]
    for start in range(places - 1):
        for end in range(start + shortest, places):
            probability = 0.0
            for used in range(count):
                way = before[used, start] + total[start, end] + after[count - 1 - used, end] - every
                if way > -40:
                    probability += np.exp(way)
            boundary[start] += probability
            if end - start > apart:
                change[start] += probability
                change[end - apart] -= probability


@exact
def _most(sums: Any, boundary: Any, apart: int, count: int, shortest: int) -> Any:
    """The cuts whose boundaries, and whose pairs inside segments, have the largest sum."""
    places = len(boundary) + 1
    best = np.full((count + 1, places), -np.inf)
    best[0, 0] = 0.0
    back = np.zeros((count + 1, places), dtype=np.int32)
    for end in range(shortest, places):
        for start in range(end - shortest + 1):
            gain = boundary[start]
            if end - start > apart:
                gain += sums[end - apart] - sums[start]
            for used in range(1, count + 1):
                value = best[used - 1, start] + gain
                if value > best[used, end]:
                    best[used, end] = value
                    back[used, end] = start
    cuts = np.zeros(count, dtype=np.int64)
    at = places - 1
    for used in range(count, 0, -1):
        at = back[used, at]
        cuts[used - 1] = at
    return cuts[1:]
