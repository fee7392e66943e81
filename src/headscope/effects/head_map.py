"""Heads on a plane and in clusters, from how much each agrees with each other."""

import numpy as np
from numpy.typing import NDArray

from headscope.study.bootstrap import Values

TOGETHER = 0.5  # mean agreement from which on clusters are joined


def clusters(agreement: Values, least: float = TOGETHER) -> NDArray[np.int64]:
    """The cluster of each head (heads,), from agreement (heads, heads); the largest is number 1.

    The two clusters whose heads agree most, on the mean of all their pairs, are joined until no
    two agree by `least`: hierarchical clustering with average linkage. Of equal size, the one with
    the first head comes first.
    """
    heads = len(agreement)
    summed = np.where(np.isfinite(agreement), agreement, 0.0)
    sizes, members = np.ones(heads), [[head] for head in range(heads)]
    there = np.ones(heads, bool)
    while there.sum() > 1:
        mean = summed / np.outer(sizes, sizes)
        mean[~there] = mean[:, ~there] = -np.inf
        np.fill_diagonal(mean, -np.inf)
        one, other = sorted(divmod(int(mean.argmax()), heads))
        if mean[one, other] < least:
            break
        summed[one] += summed[other]
        summed[:, one] += summed[:, other]
        sizes[one] += sizes[other]
        members[one] += members[other]
        there[other] = False
    joined = [own for own, is_there in zip(members, there, strict=True) if is_there]
    joined.sort(key=lambda own: (-len(own), min(own)))
    found = np.zeros(heads, np.int64)
    for number, own in enumerate(joined, 1):
        found[own] = number
    return found


def plane(agreement: Values) -> tuple[Values, float]:
    """A place on a plane for each head (heads, 2), and the share of all differences it shows.

    Agreement is the cosine of two similarity matrices, so 2 − 2·agreement is their squared
    distance, and the plane that keeps most of it is that of classical scaling (Torgerson 1952).
    The sign of an axis is that which puts its furthest head on the positive side.
    """
    known = np.where(np.isfinite(agreement), agreement, 0.0)
    about = known - known.mean(0) - known.mean(1)[:, None] + known.mean()
    values, vectors = np.linalg.eigh((about + about.T) / 2)
    order = np.argsort(-values)[:2]
    largest = np.maximum(values[order], 0)
    places = vectors[:, order] * np.sqrt(largest)
    furthest = np.abs(places).argmax(0)
    places *= np.where(places[furthest, range(places.shape[1])] < 0, -1, 1)
    total = float(np.maximum(values, 0).sum())
    return places, float(largest.sum() / total) if total else 0.0
