"""Learn a segmenter from texts that are already cut.

Three things are learned, each by a plain rule: which heads tell units of one segment from units of
two (the kernel), what a unit that begins a segment and one that ends it look like to the heads
(ridge regression), and how much each counts (tried out on examples left out of the regression).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.segment.changes import cut_into, cut_with
from headscope.segment.features import unit_vectors
from headscope.segment.scores import boundaries, boundary_f1, pk
from headscope.segment.segmenter import Segmenter, kernel_vectors, worth_of
from headscope.segment.units import unit_spans

if TYPE_CHECKING:
    from headscope.scope import Scope

REACH = 12  # units; pairs further apart do not decide which heads are kept
KEPT = 1 / 3  # of all heads, for the kernel
STRENGTH = 10.0  # of the ridge, in variances of a feature
FOLDS = 4
SHORTEST = 3  # units in a segment
BALANCES = (0.0, 2.0, 4.0, 6.0, 8.0, 11.0, 16.0, 24.0)  # of starts and ends against the kernel
PENALTIES = tuple(np.geomspace(0.25, 16, 25))

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Example:
    """A text that is already cut, as the heads see it."""

    vectors: Vectors  # (units, layers × heads, head size)
    lengths: tuple[int, ...]  # of its segments, in units

    @property
    def middle(self) -> Vectors:
        """Centred vectors as rows, (units, features)."""
        flat = self.vectors.reshape(len(self.vectors), -1).astype(np.float32)
        flat -= flat.mean(axis=0)
        return flat


def fit_segmenter(
    scope: "Scope", examples: Iterable[Iterable[str | Iterable[str]]], language: str = "en"
) -> Segmenter:
    """Read the examples with a model and learn from them; see `Scope.fit_segmenter`."""
    read = []
    for segments in examples:
        parts = [_units(segment, language) for segment in segments]
        lengths = tuple(len(part) for part in parts if part)
        units = [unit for part in parts for unit in part]
        if len(lengths) > 1:
            read.append(Example(np.concatenate(list(unit_vectors(scope, units))), lengths))
    shape = (scope.shape.layers, scope.shape.heads, scope.shape.head_size)
    return fit(read, scope.shape.name, shape)


def fit(examples: Sequence[Example], model: str, shape: tuple[int, int, int]) -> Segmenter:
    """Learn from examples that have been read."""
    if len(examples) < 2:
        raise CannotRead(
            f"{len(examples)} examples with two segments or more are too few to learn from: give "
            "at least two, better twenty. An example is a list of segments, each a string or a "
            "list of sentences."
        )
    kernel = _kernel(examples, shape)
    columns = np.array([(layer - 1) * shape[1] + head - 1 for layer, head, _ in kernel])
    weights = np.array([weight for _, _, weight in kernel])
    inside = [kernel_vectors(example.vectors[:, columns], weights) for example in examples]
    learned, left_out = _ridge(examples, shape)
    known = [
        np.mean([_merit(e, cut_into(len(e.lengths), x, balance * worth, SHORTEST))
                 for e, x, worth in zip(examples, inside, left_out, strict=True)])
        for balance in BALANCES
    ]  # fmt: skip
    balance = BALANCES[int(np.argmax(known))]
    chosen = [
        np.mean([_merit(e, cut_with(penalty, x, balance * worth, SHORTEST))
                 for e, x, worth in zip(examples, inside, left_out, strict=True)])
        for penalty in PENALTIES
    ]  # fmt: skip
    starts, ends = np.split(balance * learned, 2)
    heads = (shape[0] * shape[1], shape[2])
    return Segmenter(
        model=model,
        shape=shape,
        kernel=kernel,
        penalty=float(PENALTIES[int(np.argmax(chosen))]),
        shortest=SHORTEST,
        starts=starts.reshape(heads).astype(np.float32),
        ends=ends.reshape(heads).astype(np.float32),
        made_from=f"{len(examples)} texts, {sum(len(e.lengths) - 1 for e in examples)} boundaries",
    )


def _units(segment: str | Iterable[str], language: str) -> list[str]:
    if isinstance(segment, str):
        return [segment[start:end] for start, end in unit_spans(segment, language)]
    return list(segment)


def _merit(example: Example, cuts: list[int]) -> float:
    """F1 less Pk: neither alone can be had by cutting everywhere or nowhere."""
    found = np.diff([0, *cuts, len(example.vectors)]).tolist()
    return boundary_f1(found, example.lengths) - pk(found, example.lengths)


def _kernel(
    examples: Sequence[Example], shape: tuple[int, int, int]
) -> tuple[tuple[int, int, float], ...]:
    """The heads whose centred similarity best tells units of one segment from units of two.

    At every distance up to 12 units: difference of the two means over the standard deviation, and
    the mean of that over distances, so that a head is not kept for seeing what is near.
    """
    heads = shape[0] * shape[1]
    sums = np.zeros((REACH, 2, 3, heads))  # by distance, same segment or not: count, Σ, Σ²
    for example in examples:
        unit = kernel_vectors(example.vectors, np.full(heads, float(heads)))
        unit = unit.reshape(example.vectors.shape)
        numbers = np.repeat(np.arange(len(example.lengths)), example.lengths)
        for distance in range(1, min(REACH, len(unit) - 1) + 1):
            alike = np.einsum("uhd,uhd->uh", unit[distance:], unit[:-distance])
            same = numbers[distance:] == numbers[:-distance]
            for row, rows in enumerate((alike[same], alike[~same])):
                sums[distance - 1, row, 0] += len(rows)
                sums[distance - 1, row, 1] += rows.sum(axis=0)
                sums[distance - 1, row, 2] += (rows**2).sum(axis=0)
    both = (sums[:, :, 0] > 0).all(axis=(1, 2))  # distances at which there are pairs of both kinds
    count, total, square = sums[both].transpose(2, 0, 1, 3)
    mean = total / count
    every = count.sum(axis=1)
    variance = square.sum(axis=1) / every - (total.sum(axis=1) / every) ** 2
    apart = (mean[:, 0] - mean[:, 1]) / np.sqrt(np.maximum(variance, 1e-12))
    separation = apart.mean(axis=0)
    best = np.argsort(-separation, kind="stable")[: max(1, round(KEPT * heads))]
    return tuple(
        (int(h) // shape[1] + 1, int(h) % shape[1] + 1, 1 / len(best)) for h in sorted(best)
    )


def _ridge(
    examples: Sequence[Example], shape: tuple[int, int, int]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Weights of starts and ends, and the worth they give each example when it is left out.

    Only the middle half of the layers is asked: there the heads know best how a topic begins.
    """
    layers, heads, size = shape
    used = np.zeros((layers, heads, size), dtype=bool)
    used[layers // 4 : layers - layers // 4] = True
    places = np.flatnonzero(used)
    folds = min(FOLDS, len(examples))
    width = 2 * len(places)
    products = np.zeros((folds, width, width), dtype=np.float32)
    targets = np.zeros((folds, width))
    counts = np.zeros(folds)
    for number, example in enumerate(examples):
        rows, is_start = _rows(example, places)
        products[number % folds] += rows.T @ rows
        targets[number % folds] += rows.T @ is_start
        counts[number % folds] += len(rows)

    def solved(keep: NDArray[np.bool_]) -> NDArray[np.float64]:
        product, count = products[keep].sum(axis=0), counts[keep].sum()
        scale = np.sqrt(np.maximum(np.diag(product) / count, 1e-12))
        product /= scale[:, None] * scale[None, :] * count
        product[np.diag_indices(width)] += STRENGTH
        found = np.linalg.solve(product, targets[keep].sum(axis=0) / count / scale) / scale
        weights = np.zeros((2, used.size))
        weights[:, places] = found.reshape(2, -1)
        return weights.reshape(-1)

    left_out: list[NDArray[np.float64]] = [np.empty(0)] * len(examples)
    for fold in range(folds):
        starts, ends = np.split(solved(np.arange(folds) != fold), 2)
        for number in range(fold, len(examples), folds):
            flat = examples[number].middle
            left_out[number] = worth_of(flat @ starts, flat @ ends)
    return solved(np.ones(folds, dtype=bool)), left_out


def _rows(example: Example, places: NDArray[np.int64]) -> tuple[Vectors, NDArray[np.float32]]:
    """A row for each place a boundary could be: the unit after it, the unit before it."""
    flat = example.middle[:, places]
    is_start = np.zeros(len(flat), dtype=np.float32)
    is_start[list(boundaries(example.lengths))] = 1
    target = is_start[1:] - is_start[1:].mean()
    return np.concatenate([flat[1:], flat[:-1]], axis=1), target
