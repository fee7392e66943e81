"""Repetition: whether high pairs are the same thing twice.

The AUC of a text is estimated from `COUPLES` seeded couples of one pair of each kind.
"""

from collections.abc import Sequence
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


def couples(units: Sequence[Unit], seed: int) -> NDArray[np.int64]:
    """Places (units, 4, COUPLES): both ends of a repeated pair, both ends of another; -1 for none.

    Each is drawn evenly from all ordered pairs of its kind: one end by how many others it has, and
    then one of these. All units that do not remember theirs are looked at together.
    """
    key, found = ("couples", seed), np.empty((len(units), 4, COUPLES), np.int64)
    unknown = [unit for unit in units if key not in unit.known]
    if unknown:
        for unit, own in zip(unknown, _drawn(unknown, seed), strict=True):
            unit.known[key] = own.astype(np.min_scalar_type(-len(unit)))
    for row, unit in zip(found, units, strict=True):
        row[:] = unit.known[key]
    return found


def _drawn(units: Sequence[Unit], seed: int) -> NDArray[np.int64]:
    """The couples of some units, one behind the other."""
    order = [_by_word(unit.marks.words) for unit in units]
    sizes = np.array([len(own) for own in order])
    begin = sizes.cumsum() - sizes  # of each unit
    unit_of = np.repeat(np.arange(len(units)), sizes)
    of_word, of_occurrence = (
        _runs(unit_of, [getattr(u.marks, name)[own] for u, own in zip(units, order, strict=True)])
        for name in ("words", "occurrences")
    )
    partners = [of_word.size - of_occurrence.size, sizes[unit_of] - of_word.size]
    reached = np.zeros((2, len(unit_of) + 1), np.int64)  # partners of all tokens before each
    np.cumsum(partners, axis=1, out=reached[:, 1:])
    before, total = reached[:, begin], reached[:, begin + sizes] - reached[:, begin]
    found = np.full((len(units), 4, COUPLES), -1)
    some = np.flatnonzero(total.all(0))  # units with pairs of both kinds
    if not some.size:
        return found
    drawn = np.empty((2, len(some), COUPLES), np.int64)
    for n, unit in enumerate(some):
        random = units[int(unit)].random(seed, "couples")
        drawn[:, n] = [random.integers(number, size=COUPLES) for number in total[:, unit]]
    drawn += before[:, some, None]
    ones = [np.searchsorted(reached[kind, 1:], drawn[kind], side="right") for kind in range(2)]
    first, third = ones
    second, fourth = (reached[kind, 1:][ones[kind]] - drawn[kind] - 1 for kind in range(2))
    # Others of the word stand in its run, before this occurrence and after it.
    second += of_word.start[first]
    second += of_occurrence.size[first] * (second >= of_occurrence.start[first])
    fourth += begin[some, None]
    fourth += of_word.size[third] * (fourth >= of_word.start[third])
    found[some] = np.concatenate(order)[np.stack([first, second, third, fourth], 1)]
    return found


def _by_word(words: NDArray[np.int32]) -> NDArray[np.int64]:
    """The places of tokens that are of a word, by word."""
    places = np.flatnonzero(words >= 0)
    own = words[places]
    # Numbers of 16 bits are put in order in one go.
    narrow = own.astype(np.int16) if own.max(initial=0) < 2**15 else own
    return places[np.argsort(narrow, kind="stable")]


class _Runs(NamedTuple):
    """Of each number, where the run of equal numbers around it starts, and how long it is."""

    start: NDArray[np.int64]
    size: NDArray[np.int64]


def _runs(unit_of: NDArray[np.int64], parts: Sequence[NDArray[Any]]) -> _Runs:
    """The runs of the numbers of some units; none goes from one unit to the next."""
    numbers, new = np.concatenate(parts), np.ones(len(unit_of), bool)
    new[1:] = (numbers[1:] != numbers[:-1]) | (unit_of[1:] != unit_of[:-1])
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(numbers))
    return _Runs(np.repeat(starts, sizes), np.repeat(sizes, sizes))


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
