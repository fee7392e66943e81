"""Every way to put a few tokens into communities, one by one: what searches are held against."""

from collections.abc import Iterator
from math import perm

import numpy as np


def partitions(size: int) -> np.ndarray:
    """All set partitions of `size` tokens, as states numbered by their first token: (Bell, S)."""

    def grown(states: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(states) == size:
            yield states
            return
        for state in range(max(states, default=-1) + 2):
            yield from grown((*states, state))

    return np.array(list(grown(())))


def energies(J: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """E of every way, by the sum over pairs as it is written."""
    found = np.zeros(len(ways))
    for i in range(len(J)):
        for j in range(i + 1, len(J)):
            found -= J[i, j] * (ways[:, i] == ways[:, j])
    return found


def thermal(J: np.ndarray, temperature: float, states: int) -> tuple[float, float, float]:
    """⟨E⟩, ⟨m⟩ and S var(m) / T of q states: a partition into k parts stands for q!/(q − k)!."""
    size = len(J)
    ways = partitions(size)
    parts = ways.max(axis=1) + 1
    energy = energies(J, ways)
    weights = np.array([perm(states, k) for k in parts]) * np.exp(-energy / temperature)
    weights /= weights.sum()
    largest = np.array([np.bincount(way).max() for way in ways]) / size
    order = (states * largest - 1) / (states - 1)
    mean = weights @ order
    variance = weights @ (order - mean) ** 2
    return float(weights @ energy), float(mean), float(size * variance / temperature)
