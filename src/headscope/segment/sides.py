"""How alike both sides of every place between units are, to every head, near and far.

A unit that begins a section is unlike the few before it, and more than others like the opening of
the text, where its subject is named.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALES = (1, 2, 4, 8, 16)  # units on each side of a place that are compared
OPENING = 3  # units at the start of a text
COMPARISONS = len(SCALES) + 2
HEADS_AT_ONCE = 8

Vectors = NDArray[np.float32]


def sides_alike(vectors: Vectors) -> Vectors:
    """Similarity of the units before each unit to those from it on: (units, heads, comparisons).

    Of centred head vectors, (units, heads, size): the cosine of the sums, over as many units on
    each side as the scale says, each unit brought to length 1 first; then the cosine of the unit
    itself with the sum of all before it, and with the opening of the text. 0 before the first unit.
    """
    found = np.zeros((*vectors.shape[:2], COMPARISONS), dtype=np.float32)
    for first in range(0, vectors.shape[1], HEADS_AT_ONCE):
        heads = slice(first, first + HEADS_AT_ONCE)
        found[:, heads] = _sides_alike(of_length_one(vectors[:, heads]))
    return found


def of_length_one(vectors: Vectors) -> Vectors:
    """Vectors, along the last axis, of length 1; those that are next to nothing are 0."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    floor = 1e-6 * max(float(length.max(initial=0.0)), 1e-30)
    made: Vectors = np.where(length > floor, vectors / np.maximum(length, floor), 0)
    return made


def _sides_alike(unit: Vectors) -> Vectors:
    count = len(unit)
    before = np.zeros((count + 1, *unit.shape[1:]), dtype=np.float64)
    np.cumsum(unit, axis=0, out=before[1:])
    place = np.arange(count)
    found = np.zeros((*unit.shape[:2], COMPARISONS), dtype=np.float32)
    for number, scale in enumerate(SCALES):
        left = before[place] - before[np.maximum(place - scale, 0)]
        right = before[np.minimum(place + scale, count)] - before[place]
        found[:, :, number] = _cosine(left, right)
    found[:, :, -2] = _cosine(before[:-1], unit)
    found[:, :, -1] = _cosine(before[[min(OPENING, count)]], unit)
    found[0] = 0
    return found


def _cosine(left: NDArray[np.float64], right: NDArray[Any]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(left, axis=2) * np.linalg.norm(right, axis=2)
    alike = (left * right).sum(axis=2)
    found: NDArray[np.float64] = np.where(lengths > 1e-6, alike / np.maximum(lengths, 1e-6), 0)
    return found
