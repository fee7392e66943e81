"""How far a segmentation is from a reference one: Pk, WindowDiff, boundary F1, boundary similarity.

A segmentation is the lengths of its segments, in units (sentences, say): (2, 3, 6) puts boundaries
after units 2 and 5. The conventions are those of segeval (Fournier 2013); other libraries give
other numbers for the same segmentations. Pk and WindowDiff are errors, the other two agreements.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from headscope.errors import NotPossible

Lengths = Sequence[int]


@dataclass(frozen=True, slots=True)
class Scores:
    """The four scores of one text, each between 0 and 1."""

    pk: float  # 0 is best
    window_diff: float  # 0 is best
    boundary_f1: float  # 1 is best
    boundary_similarity: float  # 1 is best

    def as_dict(self) -> dict[str, float]:
        """Plain values, for JSON."""
        return asdict(self)


def score(found: Lengths, reference: Lengths) -> Scores:
    """All four scores of a segmentation against a reference."""
    return Scores(
        pk(found, reference),
        window_diff(found, reference),
        boundary_f1(found, reference),
        boundary_similarity(found, reference),
    )


def window_size(reference: Lengths) -> int:
    """Half the mean segment of the reference, rounded half to even; at least 2."""
    return max(2, round(Fraction(sum(reference), 2 * len(reference))))


def pk(found: Lengths, reference: Lengths) -> float:
    """How often two units k apart are in one segment here and in two there (Beeferman 1999)."""
    k = window_size(reference)
    one, other = _segment_numbers(found, reference)
    if len(one) <= k:
        return 0.0
    return float(np.mean((one[k:] == one[:-k]) != (other[k:] == other[:-k])))


def window_diff(found: Lengths, reference: Lengths) -> float:
    """How often a window of k units holds another number of boundaries (Pevzner & Hearst 2002)."""
    k = window_size(reference)
    one, other = _segment_numbers(found, reference)
    if len(one) <= k:
        return 0.0
    return float(np.mean((one[k:] - one[:-k]) != (other[k:] - other[:-k])))


def boundary_f1(found: Lengths, reference: Lengths) -> float:
    """Harmonic mean of precision and recall of the inner boundaries, each exactly placed."""
    one, other = boundaries(found), boundaries(reference)
    if not one and not other:
        return 1.0
    return 2 * len(one & other) / (len(one) + len(other))


def boundary_similarity(found: Lengths, reference: Lengths) -> float:
    """Boundary similarity B (Fournier 2013): a boundary one unit off counts as half a miss."""
    one, other = boundaries(found), boundaries(reference)
    matches, apart = len(one & other), one ^ other
    near, used = 0, set[int]()
    for place in sorted(apart):
        after = place + 1
        pair = {place, after}
        if after in apart and not pair & used and (place in one) != (after in one):
            near += 1
            used |= pair
    far = len(apart) - 2 * near
    total = matches + near + far
    return 1.0 if total == 0 else 1 - (far + near / 2) / total


def boundaries(lengths: Lengths) -> set[int]:
    """The inner boundaries: how many units stand before each."""
    return set(accumulate(lengths[:-1]))


def _segment_numbers(
    found: Lengths, reference: Lengths
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of each unit's segment in both segmentations."""
    for name, lengths in (("found", found), ("reference", reference)):
        if not lengths or min(lengths) < 1:
            raise NotPossible(f"the {name} segmentation {tuple(lengths)} has an empty segment")
    if sum(found) != sum(reference):
        raise NotPossible(
            f"the segmentations are of different texts: {sum(found)} and {sum(reference)} units"
        )
    one = np.repeat(np.arange(len(found)), found)
    other = np.repeat(np.arange(len(reference)), reference)
    return one, other
