"""Repetition: whether high pairs are the same thing twice.

The AUC of a text is estimated from `COUPLES` seeded couples of one pair of each kind.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.compute.arrays import Array, library, real
from headscope.compute.compiled import fast
from headscope.measures.base import (
    ALL_PAIRS,
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    all_on_grid,
    ratio,
)
from headscope.units import Unit
from headscope.words import WordClass

COUPLES = 128
BY_CLASS = (
    "same_content_word",
    "same_function_word",
    "same_punctuation",
    "same_unknown_or_markup",
)  # in the order of `WordClass`


def couples(unit: Unit, seed: int) -> NDArray[np.int64]:
    """Places (4, COUPLES): both ends of a repeated pair, both ends of another; -1 for none.

    Each is drawn evenly from all ordered pairs of its kind: one end by how many others it has, and
    then one of these.
    """
    words, occurrences = unit.marks.words, unit.marks.occurrences
    places = np.flatnonzero(words >= 0)
    # By word, and pieces of one occurrence beside each other.
    order = places[np.argsort(words[places], kind="stable")]
    of_word, of_occurrence = _runs(words[order]), _runs(occurrences[order])
    again, other = of_word.size - of_occurrence.size, len(order) - of_word.size
    if not (again.any() and other.any()):
        return np.full((4, COUPLES), -1)
    random = unit.random(seed, "couples")
    first, second = _draw(random, again)
    # Others of the word stand in its run, before this occurrence and after it.
    second += of_word.start[first]
    second += of_occurrence.size[first] * (second >= of_occurrence.start[first])
    third, fourth = _draw(random, other)
    fourth += of_word.size[third] * (fourth >= of_word.start[third])
    return order[np.stack([first, second, third, fourth])]


class _Runs(NamedTuple):
    """Of each number, where the run of equal numbers around it starts, and how long it is."""

    start: NDArray[np.int64]
    size: NDArray[np.int64]


def _runs(numbers: NDArray[Any]) -> _Runs:
    new = np.ones(len(numbers), bool)
    new[1:] = numbers[1:] != numbers[:-1]
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(numbers))
    return _Runs(np.repeat(starts, sizes), np.repeat(sizes, sizes))


def _draw(
    random: np.random.Generator, partners: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw pairs: one end, and the number of the other among its partners."""
    reached = partners.cumsum()
    drawn = random.integers(reached[-1], size=COUPLES)
    one = np.searchsorted(reached, drawn, side="right")
    return one, reached[one] - drawn - 1


def detection(vectors: Tensor, places: Tensor) -> Tensor:
    """How often repeated pairs win (texts, heads); NaN for a text without repetition.

    vectors: read vectors (texts, heads, tokens, d), whose scalar products are C.
    places: of `couples` (texts, 4, couples), where the vectors are.
    """
    if vectors.is_cuda:
        from headscope.pairs.cuda.head_vectors import wins_of_repeated

        wins = wins_of_repeated(vectors, places)
    else:
        wins = torch.zeros(vectors.shape[:2], dtype=torch.float64)
        _wins(vectors.contiguous().numpy(), places.numpy(), wins.numpy())
    return shares(wins, places)


def shares(wins: Tensor, places: Tensor) -> Tensor:
    """Of couples won (texts, …, heads) the share; NaN for a text that has none."""
    none = places.amin((1, 2)).view(-1, *[1] * (wins.ndim - 1)) < 0  # (texts, …, 1)
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


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    detection = observed.detection
    known = library(detection).isfinite(detection)
    repeated, chance = observed.high("repeated"), observed.expected("repeated")  # (…, classes)
    by_class = {
        name: value
        for number, own in enumerate(BY_CLASS)
        for name, value in (
            (own, repeated[..., number]),
            (f"{own}_chance", chance[..., number]),
        )
    }
    found = {
        "high": observed.high("count"),
        **by_class,
        "same_token": observed.high("same_token"),
        "same_token_chance": observed.expected("same_token"),
        "same_word": observed.high("same_word"),
        "same_word_chance": observed.expected("same_word"),
        "detection": library(detection).where(known, detection, 0.0),
        "detection_texts": real(known),
    }
    return all_on_grid(found)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    found = {
        name: Quantity(ratio(sums[name], sums["high"]), ratio(sums[f"{name}_chance"], sums["high"]))
        for name in ("same_token", "same_word", *BY_CLASS)
    }
    auc = ratio(sums["detection"], sums["detection_texts"])
    found["detection"] = Quantity(auc, np.full_like(auc, 0.5))
    return found


MEASURE = Measure(
    "repetition",
    "whether high pairs are the same thing twice",
    ("pairs", "vectors"),
    ("reading", "special", "rule"),
    (
        Definition(
            "same_token",
            "share of the high pairs whose two tokens have one id",
            "share of high pairs",
            "percent",
            "more repetition",
            ALL_PAIRS,
            "ours",
        ),
        Definition(
            "same_word",
            "share of the high pairs whose two tokens are pieces of two occurrences of one word",
            "share of high pairs",
            "percent",
            "more repetition",
            ALL_PAIRS,
            "paper",
        ),
        *(
            Definition(
                name,
                f"share of the high pairs that are one word twice, of {word_class.label}",
                "share of high pairs",
                "percent",
                f"more repetition of {word_class.label}",
                ALL_PAIRS,
                "ours",
            )
            for name, word_class in zip(BY_CLASS, WordClass, strict=True)
        ),
        Definition(
            "detection",
            "AUC of C as a detector of repeated words: how often a pair of equal words is more "
            "similar than a pair of different ones (ties count half); mean over texts",
            "AUC",
            "number",
            "C tells repeated words from others",
            "½",
            "ours",
        ),
    ),
    update,
    compute,
)
