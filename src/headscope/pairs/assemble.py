"""From the numbers that the kernels count to the statistics that people read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.compute.arrays import library
from headscope.pairs.batch import TokenBatch
from headscope.pairs.chance import TextChance, chance_pairs, text_chance
from headscope.pairs.rules import Nearest, Peak, Rule, Sigma
from headscope.pairs.statistics import (
    Anchors,
    ChancePairs,
    Counts,
    HighPairs,
    PairStatistics,
    TopPairs,
    Values,
)
from headscope.pairs.tokens import WORD_CLASSES, SimilarityReading, Special

# Places of the counters of high pairs.
COUNT, SAME_SENTENCE, SAME_TOKEN, SAME_WORD, SPECIAL, UNRELATED, REPEATED = range(7)
UNRESOLVED, LARGE = REPEATED + WORD_CLASSES, REPEATED + WORD_CLASSES + 1  # behind the classes
COUNTERS = LARGE + 1


@dataclass(frozen=True, slots=True)
class HighNumbers:
    """What the kernels count over the high pairs of one rule."""

    reach: Values  # (B, H) threshold
    counters: Counts  # (B, H, COUNTERS)
    by_distance: Counts  # (B, H, D)
    expected: Values  # (B, H) inside one sentence, if only the distances were kept
    taking_part: Counts  # (B, H, S)
    anchors: Anchors | None


@dataclass(frozen=True, slots=True)
class PairNumbers:
    """What the kernels count over all pairs, in units of 4**exponent and about a shift."""

    exponent: npt.NDArray[np.int32] | None  # (B, H); None where nothing was scaled
    shift: Values  # (B, H)
    sums: Values  # (B, H, D) by distance, of C - shift
    square: Values  # (B, H) of (C - shift)²
    unrelated: Values  # (B, H, 2) of both over unrelated pairs
    highest: Values  # (B, H) maximum
    high: tuple[HighNumbers, ...]
    top: TopPairs | None


def chance_of(batch: TokenBatch, special: Special) -> ChancePairs:
    """Counts over all pairs of every text of a batch, made once."""
    return batch.remember(("pairs", special), lambda: chance_pairs(batch_chance(batch, special)))


def batch_chance(batch: TokenBatch, special: Special) -> list[TextChance]:
    """The counts over all pairs of every text, counted once."""
    return batch.remember(
        ("chance", special), lambda: [text_chance(text, special) for text in batch.texts]
    )


def simple_reach(
    rule: Peak | Sigma, count: int, shift: Values, totals: Values, extremes: npt.NDArray[Any]
) -> Values:
    """The threshold of the rules that need no search, in float64."""
    wide = extremes.astype(np.float64)
    if isinstance(rule, Peak):
        highest: Values = rule.f * wide[..., 1]
        return highest
    if wide[..., 0] == wide[..., 1]:
        return wide[..., 0]
    off = totals[..., 0] / count
    spread = np.sqrt(np.maximum(totals[..., 1] / count - off**2, 0))
    reach: Values = shift + off + rule.k * spread
    return reach


def round_up(value: Values) -> npt.NDArray[np.float32]:
    """The smallest float32 that is not below: x >= value and x >= round_up(value) are the same."""
    near = value.astype(np.float32)
    return np.where(near < value, np.nextafter(near, np.float32(np.inf)), near).astype(np.float32)


def assemble(
    chance: ChancePairs,
    rules: Sequence[Rule],
    numbers: PairNumbers,
    reading: SimilarityReading,
    special: Special,
) -> PairStatistics:
    """Scale back, bin the distances and put chance beside; on the host or on a device."""
    maths = library(numbers.shift)
    where, count = maths.where, chance.count[:, None]  # (B, 1)
    shift = numbers.shift  # (B, H)
    total, square = numbers.sums.sum(-1), numbers.square  # (B, H)
    with np.errstate(invalid="ignore", divide="ignore"):
        off = total / count
        variance = (square / count - off**2).clip(min=0)
    none = maths.broadcast_to(count == 0, off.shape)
    apart = chance.unrelated[:, None]  # (B, 1)
    unrelated = where(apart[..., None] > 0, numbers.unrelated, 0.0)
    far, far_square = unrelated[..., 0], unrelated[..., 1]
    # Sums of C and C² from those about the shift; more than the squares of what was shifted by.
    unrelated_sum = far + apart * shift
    unrelated_square = (far_square + shift * (far + unrelated_sum)).clip(min=0)
    by_distance = numbers.sums + chance.by_distance[:, None] * shift[..., None]  # (B, H, D)

    def scaled(value: Values, power: int) -> Values:
        """Times 4**(power · exponent) (B, H, …)."""
        if numbers.exponent is None:
            return value
        exponent = 2 * power * numbers.exponent
        found: Values = np.ldexp(value, exponent.reshape(exponent.shape + (1,) * (value.ndim - 2)))
        return found

    def true(value: Values, power: int) -> Values:
        found: Values = where(none, np.nan, scaled(value, power))
        return found

    def high(rule: Rule, counted: HighNumbers) -> HighPairs:
        unknown = none | isinstance(rule, Nearest)
        return HighPairs(
            rule=rule,
            threshold=where(unknown, np.nan, scaled(counted.reach, 1)),
            count=counted.counters[..., COUNT],
            by_distance=counted.by_distance,
            same_sentence=counted.counters[..., SAME_SENTENCE],
            same_sentence_expected=counted.expected,
            same_token=counted.counters[..., SAME_TOKEN],
            same_word=counted.counters[..., SAME_WORD],
            repeated=counted.counters[..., REPEATED : REPEATED + WORD_CLASSES],
            special=counted.counters[..., SPECIAL],
            unrelated=counted.counters[..., UNRELATED],
            unresolved=counted.counters[..., UNRESOLVED],
            large=counted.counters[..., LARGE],
            taking_part=counted.taking_part,
            anchors=counted.anchors,
        )

    top = numbers.top
    return PairStatistics(
        reading=reading,
        special=special,
        chance=chance,
        mean=true(shift + off, 1),
        variance=true(variance, 2),
        maximum=true(numbers.highest, 1),
        sum_by_distance=scaled(by_distance, 1),
        related_sum=scaled(total + count * shift - unrelated_sum, 1),
        unrelated_sum=scaled(unrelated_sum, 1),
        unrelated_square=scaled(unrelated_square, 2),
        high=tuple(high(rule, counted) for rule, counted in zip(rules, numbers.high, strict=True)),
        top=top and TopPairs(top.first, top.second, scaled(top.value, 1)),
    )
