"""Learn a segmenter from texts that are already cut.

A logistic regression learns, from every place a boundary could be, what speaks for one: how the
unit after it starts and the one before it ends, as the middle layers see them, and how alike both
sides are to each head, near and far. How much that counts against the kernel of the late heads,
and what a boundary must be worth, is tried out on examples left out of the regression.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.segment.consensus import agree_into
from headscope.segment.features import unit_vectors
from headscope.segment.passages import passage_spans
from headscope.segment.scores import boundaries, boundary_f1, window_diff
from headscope.segment.segmenter import Kernel, Segmenter, late_heads
from headscope.segment.sides import COMPARISONS, sides_alike
from headscope.segment.ways import Ways

if TYPE_CHECKING:
    from headscope.observed import ObservedModel
    from headscope.study.folder import Study

STRENGTH = 0.1  # of the ridge on standardised features, against the mean log loss
STEPS = 80  # of L-BFGS
FOLDS = 4
SHORTEST = 2  # units in a segment
BALANCES = (0.0, 0.25, 0.4, 0.5, 0.65, 0.8, 1.0, 1.5, 2.0)  # of what was learned against the kernel
PENALTIES = tuple(np.geomspace(1, 16, 33))

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Example:
    """A text that is already cut, as the heads see it."""

    vectors: Vectors  # (units, layers × heads, head size)
    lengths: tuple[int, ...]  # of its segments, in units


def fit_segmenter(
    scope: "ObservedModel",
    examples: Iterable[Iterable[str | Iterable[str]]],
    language: str = "en",
    study: "Study | None" = None,
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
    kernel = None
    if study is not None:
        chosen = Segmenter.from_study(study)
        chosen.check(scope)
        kernel = chosen.kernel
    return fit(read, scope.shape.name, shape, kernel)


def fit(
    examples: Sequence[Example],
    model: str,
    shape: tuple[int, int, int],
    kernel: Kernel | None = None,
) -> Segmenter:
    """Learn from examples that have been read; the kernel is of the late heads unless given."""
    if len(examples) < 2:
        raise CannotRead(
            f"{len(examples)} examples with two segments or more are too few to learn from: give "
            "at least two, better twenty. An example is a list of segments, each a string or a "
            "list of sentences."
        )
    plain = Segmenter(model, shape, kernel or late_heads(*shape[:2]), 0.0, SHORTEST)
    learned, worths = _regression(examples, plain)
    vectors = [plain.evidence(example.vectors).vectors for example in examples]
    every = list(zip(examples, vectors, worths, strict=True))

    def known(balance: float) -> float:
        cut = [agree_into(len(e.lengths), x, balance * worth, SHORTEST) for e, x, worth in every]
        return _merit(examples, cut)

    balance = max(BALANCES, key=known)
    made = learned.times(balance)

    @cache
    def into(number: int, count: int) -> list[int]:
        _, x, worth = every[number]
        return agree_into(count, x, balance * worth, SHORTEST)

    def chosen(penalty: float) -> float:
        ways = [Ways(x, balance * w, penalty, made.sharpness, SHORTEST) for _, x, w in every]
        return _merit(examples, [into(i, way.segments(1.0)) for i, way in enumerate(ways)])

    count = sum(len(example.lengths) - 1 for example in examples)
    return replace(
        made,
        penalty=float(max(PENALTIES, key=chosen)),
        made_from=f"{len(examples)} texts, {count} boundaries",
    )


def _units(segment: str | Iterable[str], language: str) -> list[str]:
    if isinstance(segment, str):
        return [segment[start:end] for start, end in passage_spans(segment, language)]
    return list(segment)


def _merit(examples: Sequence[Example], cuts: list[list[int]]) -> float:
    """Mean F1 less WindowDiff: neither is good where a text is cut everywhere or nowhere."""
    merits = []
    for example, places in zip(examples, cuts, strict=True):
        found = np.diff([0, *places, len(example.vectors)]).tolist()
        merits.append(boundary_f1(found, example.lengths) - window_diff(found, example.lengths))
    return float(np.mean(merits))


def _regression(
    examples: Sequence[Example], plain: Segmenter
) -> tuple[Segmenter, list[NDArray[np.float64]]]:
    """A segmenter learned from all examples, and what boundaries of each are worth to the others.

    The worth of an example comes from a regression over folds that it is not in.
    """
    every = [_rows(example, plain.shape) for example in examples]
    folds = min(FOLDS, len(examples))
    worths: list[NDArray[np.float64]] = [np.empty(0)] * len(examples)
    for fold in range(folds):
        others = [rows for number, rows in enumerate(every) if number % folds != fold]
        learned = _with_weights(plain, _logistic(others))
        for number in range(fold, len(examples), folds):
            worths[number] = learned.evidence(examples[number].vectors).worth
    return _with_weights(plain, _logistic(every)), worths


def _rows(example: Example, shape: tuple[int, int, int]) -> tuple[Vectors, NDArray[np.float32]]:
    """A row for each place a boundary could be, and whether one is there.

    Features: the unit after it, the unit before it, both in the middle half of the layers, where
    heads know best how a topic begins; and how alike both sides are to every head.
    """
    layers, heads, _ = shape
    centred = example.vectors - example.vectors.mean(axis=0)
    middle = centred[:, _middle(layers, heads)].reshape(len(centred), -1)
    sides = sides_alike(centred).reshape(len(centred), -1)
    is_start = np.zeros(len(centred), dtype=np.float32)
    is_start[list(boundaries(example.lengths))] = 1
    return np.concatenate([middle[1:], middle[:-1], sides[1:]], axis=1), is_start[1:]


def _middle(layers: int, heads: int) -> slice:
    """The heads of the middle half of the layers."""
    return slice(layers // 4 * heads, (layers - layers // 4) * heads)


def _logistic(every: Sequence[tuple[Vectors, NDArray[np.float32]]]) -> NDArray[np.float32]:
    """Logistic regression with a ridge on standardised features: a weight for each."""
    x = torch.from_numpy(np.concatenate([rows for rows, _ in every]))
    y = torch.from_numpy(np.concatenate([labels for _, labels in every]))
    spread, mean = torch.std_mean(x, dim=0)
    spread.clamp_(min=1e-6)
    x.sub_(mean).div_(spread)
    weights = torch.zeros(x.shape[1], requires_grad=True)
    constant = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, constant], max_iter=STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> float:
        optimiser.zero_grad()
        odds = x @ weights + constant
        found = torch.nn.functional.binary_cross_entropy_with_logits(odds, y)
        found = found + STRENGTH * (weights**2).sum()
        found.backward()
        return float(found.detach())

    optimiser.step(loss)
    made: NDArray[np.float32] = (weights.detach() / spread).numpy()
    return made


def _with_weights(plain: Segmenter, weights: NDArray[np.float32]) -> Segmenter:
    """A segmenter with what was learned, in the order of `_rows`."""
    layers, heads, size = plain.shape
    middle = _middle(layers, heads)
    width = size * (middle.stop - middle.start)
    starts, ends = np.zeros((2, layers * heads, size), dtype=np.float32)
    starts[middle] = weights[:width].reshape(-1, size)
    ends[middle] = weights[width : 2 * width].reshape(-1, size)
    sides = weights[2 * width :].reshape(layers * heads, COMPARISONS)
    return replace(plain, starts=starts, ends=ends, sides=sides)
