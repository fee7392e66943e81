"""The results of the pair statistics: plain arrays with one entry for each text and head.

On a device they may be tensors of the same names, and several layers can be `joined` to one.

Counts and sums are over unordered pairs of distinct tokens that take part. Counts and sums add up
over texts; means, variances, extremes and thresholds belong to one head in one text.
B texts, H heads, S tokens in the longest text, D distance bins (`distances.py`), K kinds of type.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.pairs.rules import Rule
from headscope.pairs.tokens import SimilarityReading, Special

Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChancePairs:
    """Counts over *all* pairs of a text, the same for every head: what chance levels need."""

    count: Counts  # (B,) pairs
    by_distance: Counts  # (B, D)
    same_sentence: Counts  # (B,)
    same_sentence_by_distance: Counts  # (B, D)
    same_token: Counts  # (B,)
    same_word: Counts  # (B,) pieces of two occurrences of one word
    repeated: Counts  # (B, classes) the same, by class of word
    special: Counts  # (B,) at least one end is special
    unrelated: Counts  # (B,) other sentence, other word, far apart, no end special


@dataclass(frozen=True, slots=True)
class Anchors:
    """The type that most ends of high pairs are of, by kind of type; -1 and 0 without pairs."""

    place: Counts  # (B, H, K) where the type first occurs; of equals, the first
    ends: Counts  # (B, H, K) ends of high pairs that are of the type
    around: Counts  # (B, H, K) high pairs with an end within `AROUND` places of an occurrence


@dataclass(frozen=True, slots=True)
class HighPairs:
    """Counts over the pairs that a rule calls high."""

    rule: Rule
    threshold: Values  # (B, H) NaN where there is no pair, and for `nearest` (one a token)
    count: Counts  # (B, H)
    by_distance: Counts  # (B, H, D)
    same_sentence: Counts  # (B, H)
    same_sentence_expected: Values  # (B, H) if only the distances of the high pairs were kept
    same_token: Counts  # (B, H)
    same_word: Counts  # (B, H)
    repeated: Counts  # (B, H, classes) the same, by class of word
    special: Counts  # (B, H)
    unrelated: Counts  # (B, H)
    unresolved: Counts  # (B, H) no further above the threshold than rounding goes
    large: Counts  # (B, H) among as many pairs of the largest vectors too; for `quantile`, else 0
    taking_part: Counts  # (B, H, S) high pairs that a position is an end of
    anchors: Anchors | None  # where the batch has types


@dataclass(frozen=True, slots=True)
class TopPairs:
    """The most similar pairs, most similar first, ties by position; -1 and NaN past the last."""

    first: Counts  # (B, H, N) position of the earlier token
    second: Counts  # (B, H, N) position of the later token
    value: Values  # (B, H, N)


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Everything `pair_statistics` says about the similarity matrices of one layer."""

    reading: SimilarityReading
    special: Special
    chance: ChancePairs
    mean: Values  # (B, H) NaN where there is no pair, like the next three
    variance: Values  # (B, H) over pairs, divided by their number
    maximum: Values  # (B, H)
    sum_by_distance: Values  # (B, H, D) sum of C
    related_sum: Values  # (B, H) sum of C over all related pairs
    unrelated_sum: Values  # (B, H) sum of C over all unrelated pairs
    unrelated_square: Values  # (B, H) sum of C² over them
    high: tuple[HighPairs, ...]  # one for each rule, in the order asked for
    top: TopPairs | None  # the most similar pairs, where they were asked for


def each_of(chance: ChancePairs, change: Callable[[Any], Any]) -> ChancePairs:
    """The same counts, every array changed in one way."""
    arrays = {field.name: change(getattr(chance, field.name)) for field in fields(chance)}
    return replace(chance, **arrays)


def of_texts(found: PairStatistics, texts: slice, special: Special) -> PairStatistics:
    """The statistics of some of the texts, which were looked at under one setting."""
    own = joined([found], lambda parts: parts[0][texts])
    return replace(own, special=special, chance=each_of(found.chance, lambda part: part[texts]))


def joined(layers: Sequence[PairStatistics], join: Callable[[list[Any]], Any]) -> PairStatistics:
    """The statistics of several layers of the same texts as one, each array put together."""
    first = layers[0]

    def of(parts: Sequence[Any], without: tuple[str, ...]) -> Any:
        named = [field.name for field in fields(parts[0]) if field.name not in without]
        arrays = {name: join([getattr(part, name) for part in parts]) for name in named}
        return replace(parts[0], **arrays)

    def high(rule: int) -> HighPairs:
        parts = [layer.high[rule] for layer in layers]
        found: HighPairs = of(parts, ("rule", "anchors"))
        if found.anchors is None:
            return found
        return replace(found, anchors=of([part.anchors for part in parts], ()))

    found: PairStatistics = of(layers, ("reading", "special", "chance", "high", "top"))
    top = None if first.top is None else of([layer.top for layer in layers], ())
    return replace(found, high=tuple(high(rule) for rule in range(len(first.high))), top=top)
