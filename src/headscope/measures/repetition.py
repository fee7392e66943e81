"""Repetition: whether high pairs are the same thing twice.

    same_token   high pairs of equal token id / high pairs       chance: the share among all pairs
    same_word    high pairs of equal word, pieces joined         of the same texts
    detection    AUC of C as a detector of repeated words: how often a pair of equal words is more
                 similar than a pair of different words (ties count half), mean over texts; chance ½

The AUC of a text is estimated from `COUPLES` seeded couples of one pair of each kind.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio
from headscope.pairs.compiled import fast
from headscope.study.units import Unit

COUPLES = 128


def couples(unit: Unit, seed: int) -> NDArray[np.int64]:
    """Places (4, COUPLES): both ends of a repeated pair, both ends of another; -1 for none."""
    words = unit.marks.words
    places = np.flatnonzero(words >= 0)
    order = places[np.argsort(words[places], kind="stable")]
    values, starts, sizes = np.unique(words[order], return_index=True, return_counts=True)
    found = np.full((4, COUPLES), -1)
    repeated = sizes * (sizes - 1) // 2  # pairs of each word
    if not repeated.sum() or len(values) < 2:
        return found
    random = unit.random(seed, "couples")
    group = random.choice(len(values), COUPLES, p=repeated / repeated.sum())
    one = random.integers(sizes[group])
    other = (one + 1 + random.integers(sizes[group] - 1)) % sizes[group]
    found[0], found[1] = order[starts[group] + one], order[starts[group] + other]
    # Of different words: draw ends anew until the words differ.
    found[2], found[3] = random.choice(places, COUPLES), random.choice(places, COUPLES)
    while (alike := words[found[2]] == words[found[3]]).any():
        found[2][alike] = random.choice(places, alike.sum())
        found[3][alike] = random.choice(places, alike.sum())
    return found


def detection(vectors: Tensor, places: Tensor) -> Tensor:
    """How often repeated pairs win (texts, heads); NaN for a text without repetition.

    vectors: read vectors (texts, heads, tokens, d), whose scalar products are C.
    places: of `couples` (texts, 4, couples), where the vectors are.
    """
    if vectors.is_cuda:
        wins = _wins_on_device(vectors, places)
    else:
        wins = torch.zeros(vectors.shape[:2], dtype=torch.float64)
        _wins(vectors.contiguous().numpy(), places.numpy(), wins.numpy())
    none = places.amin((1, 2))[:, None] < 0  # (texts, 1)
    return torch.where(none, torch.nan, wins / COUPLES)


@fast
def _wins(vectors: Any, places: Any, wins: Any) -> None:
    """Count couples of which the repeated pair wins, ties half, into wins (texts, heads)."""
    texts, heads, _, size = vectors.shape
    for b in range(texts):
        for n in range(places.shape[2]):
            i, j, k, m = places[b, 0, n], places[b, 1, n], places[b, 2, n], places[b, 3, n]
            if i < 0:
                continue
            for h in range(heads):
                repeated, other = np.float32(0), np.float32(0)
                for x in range(size):
                    repeated += vectors[b, h, i, x] * vectors[b, h, j, x]
                    other += vectors[b, h, k, x] * vectors[b, h, m, x]
                wins[b, h] += 1.0 if repeated > other else 0.5 if repeated == other else 0.0


def _wins_on_device(vectors: Tensor, places: Tensor) -> Tensor:
    """The same, (texts, heads), where the vectors are on a device."""
    index = places.clamp(min=0)[:, None, :, :, None]  # (texts, 1, 4, couples, 1)
    size = (*vectors.shape[:2], 4, COUPLES, vectors.shape[-1])
    ends = vectors[:, :, None].expand(-1, -1, 4, -1, -1).gather(3, index.expand(size))
    repeated, other = (
        (ends[:, :, 0] * ends[:, :, 1]).sum(-1),
        (ends[:, :, 2] * ends[:, :, 3]).sum(-1),
    )
    return ((repeated > other).double() + (repeated == other).double() / 2).sum(-1)


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    known = np.isfinite(seen.detection)
    return {
        "high": seen.high("count"),
        "same_token": seen.high("same_token"),
        "same_token_chance": seen.expected("same_token"),
        "same_word": seen.high("same_word"),
        "same_word_chance": seen.expected("same_word"),
        "detection": on_grid(np.where(known, seen.detection, 0)),
        "detection_texts": 1.0 * known,
    }


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    found = {
        name: Quantity(ratio(sums[name], sums["high"]), ratio(sums[f"{name}_chance"], sums["high"]))
        for name in ("same_token", "same_word")
    }
    auc = ratio(sums["detection"], sums["detection_texts"])
    found["detection"] = Quantity(auc, np.full_like(auc, 0.5))
    return found
