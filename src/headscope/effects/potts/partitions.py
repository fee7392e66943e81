"""How far communities of tokens agree with sentences or paragraphs, and what chance would give.

The score is adjusted mutual information (Vinh, Epps and Bailey, 2010): 1 where both cut a text
alike, 0 on average where one of them is permuted. Two chances beside it keep what permuting
destroys, that tokens near each other are often in one community.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
States = NDArray[np.int64]


def agreement(states: States, parts: States) -> float:
    """Adjusted mutual information of two ways to cut one text; NaN if neither cuts it."""
    return float(agreements(states[None], parts)[0])


def shifted(states: States, parts: States) -> float:
    """The mean agreement of the communities moved along the text, by every number of places.

    What goes over the end comes in at the beginning. So sizes and distances within communities
    stay as they are, and only where they stand in the text is left to chance.
    """
    size = len(states)
    if size < 2:
        return np.nan
    places = (np.arange(size) + np.arange(1, size)[:, None]) % size
    return float(agreements(states[places], parts).mean())


def as_blocks(states: States, parts: States, random: np.random.Generator, draws: int = 16) -> float:
    """The mean agreement of unbroken blocks as large as the communities, in random order."""
    sizes = np.bincount(states)
    orders = [random.permutation(len(sizes)) for _ in range(draws)]
    blocks = np.stack([np.repeat(order, sizes[order]) for order in orders])
    return float(agreements(blocks, parts).mean())


def agreements(several: States, parts: States) -> Values:
    """Adjusted mutual information of several ways to cut a text (ways, S) with one (S,).

    The ways have communities of the same sizes, and so the same expectation under permutation.
    """
    size = len(parts)
    _, ours = np.unique(parts, return_inverse=True)
    number, pieces = int(several.max(initial=0)) + 1, int(ours.max(initial=0)) + 1
    cells = several * pieces + ours + (np.arange(len(several)) * number * pieces)[:, None]
    counts = np.bincount(cells.ravel(), minlength=len(several) * number * pieces)
    table = counts.reshape(len(several), number, pieces).astype(np.float64)
    rows, columns = table[0].sum(axis=1), table[0].sum(axis=0)
    most = (_entropy(rows / size) + _entropy(columns / size)) / 2
    expected = expected_information(rows.astype(np.int64), columns.astype(np.int64))
    if most == 0:
        return np.full(len(several), np.nan)
    even = np.outer(rows, columns) / size
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(table > 0, table * np.log(table / np.where(even > 0, even, 1)), 0)
    information = own.sum(axis=(1, 2)) / size
    # All of a text in as many parts as tokens, on both sides: nothing that chance could not do.
    if most - expected <= 1e-12:
        return np.where(np.isclose(information, most), 1.0, 0.0)
    adjusted: Values = (information - expected) / (most - expected)
    return adjusted


def expected_information(rows: States, columns: States) -> float:
    """The mean mutual information over all permutations, from the sizes of the parts."""
    size = int(rows.sum())
    logs = _log_factorials(size)
    found = 0.0
    for a, times_a in zip(*np.unique(rows[rows > 0], return_counts=True), strict=True):
        for b, times_b in zip(*np.unique(columns[columns > 0], return_counts=True), strict=True):
            n = np.arange(max(1, a + b - size), min(a, b) + 1)
            log_chance = (
                logs[a] + logs[b] + logs[size - a] + logs[size - b]
                - logs[size] - logs[n] - logs[a - n] - logs[b - n] - logs[size - a - b + n]
            )  # fmt: skip
            worth = n / size * np.log(size * n / (a * b))
            found += times_a * times_b * float((worth * np.exp(log_chance)).sum())
    return found


@lru_cache(maxsize=16)
def _log_factorials(most: int) -> Values:
    """ln 0!, ln 1!, …, ln most!."""
    logs: Values = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    return logs


def _entropy(shares: Values) -> float:
    some = shares[shares > 0]
    return -float((some * np.log(some)).sum())
