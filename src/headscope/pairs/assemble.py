"""From the numbers that the kernels count to the statistics that people read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.pairs.batch import TokenBatch
from headscope.pairs.chance import TextChance, chance_pairs, text_chance
from headscope.pairs.compiled import exact
from headscope.pairs.rules import Nearest, Peak, Rule, Sigma
from headscope.pairs.statistics import Anchors, Counts, HighPairs, PairStatistics, TopPairs, Values
from headscope.pairs.tokens import Reading, Special

# Places of the counters of high pairs.
COUNT, SAME_SENTENCE, SAME_TOKEN, SAME_WORD, SPECIAL, UNRELATED = range(6)
COUNTERS = 6


@dataclass(frozen=True, slots=True)
class HighNumbers:
    """What the kernels count over the high pairs of one rule; sums in scaled units."""

    reach: Values  # (B, H) threshold
    counters: Counts  # (B, H, COUNTERS)
    by_distance: Counts  # (B, H, D)
    expected: Values  # (B, H) inside one sentence, if only the distances were kept
    taking_part: Counts  # (B, H, S)
    sums: Values  # (B, H, 2) over related and unrelated high pairs
    anchors: Anchors | None


@dataclass(frozen=True, slots=True)
class PairNumbers:
    """What the kernels count over all pairs, in units of 4**exponent and about a shift."""

    exponent: npt.NDArray[np.int32]  # (B, H)
    shift: Values  # (B, H)
    sums: Values  # (B, H, D) by distance, of C - shift
    squares: Values  # (B, H, D) by distance, of (C - shift)²
    unrelated: Values  # (B, H, 2) the same two sums over unrelated pairs
    extremes: Values  # (B, H, 2) minimum and maximum
    high: tuple[HighNumbers, ...]
    top: TopPairs | None


def batch_chance(batch: TokenBatch, special: Special) -> list[TextChance]:
    """The counts over all pairs of every text, counted once."""
    return batch.remember(
        ("chance", special), lambda: [text_chance(text, special) for text in batch.texts]
    )


def mean_and_variance(
    count: npt.NDArray[Any], shift: Values, total: Values, square: Values, extremes: Values
) -> tuple[Values, Values]:
    """Mean and variance (B, H) from sums about a shift; exactly constant where extremes meet."""
    with np.errstate(invalid="ignore", divide="ignore"):
        off = total / count
        mean = shift + off
        variance = np.maximum(square / count - off**2, 0)
    constant = extremes[..., 0] == extremes[..., 1]
    return np.where(constant, extremes[..., 0], mean), np.where(constant, 0.0, variance)


def simple_reach(
    rule: Peak | Sigma, count: int, shift: Values, totals: Values, extremes: npt.NDArray[Any]
) -> Values:
    """The threshold of the rules that need no search, in float64."""
    wide = extremes.astype(np.float64)
    if isinstance(rule, Peak):
        highest: Values = rule.f * wide[..., 1]
        return highest
    pairs = np.array(count)
    mean, variance = mean_and_variance(pairs, shift, totals[..., 0], totals[..., 1], wide)
    reach: Values = mean + rule.k * np.sqrt(variance)
    return reach


def round_up(value: Values) -> npt.NDArray[np.float32]:
    """The smallest float32 that is not below: x >= value and x >= round_up(value) are the same."""
    near = value.astype(np.float32)
    return np.where(near < value, np.nextafter(near, np.float32(np.inf)), near).astype(np.float32)


@exact
def _unshift(
    pairs: Any,  # (B, n) int64
    shift: Any,  # (B, H)
    exponent: Any,  # (B, H) int32
    total: Any,  # (B, H, n) of C - shift in units of 4**exponent
    square: Any,  # (B, H, n) of (C - shift)²
    plain: Any,  # (B, H, n) out
    squared: Any,  # (B, H, n) out
) -> None:
    texts, heads, size = total.shape
    for b in range(texts):
        for h in range(heads):
            about, unit = shift[b, h], 4.0 ** exponent[b, h]
            for n in range(size):
                moved = pairs[b, n] * about
                plain[b, h, n] = (total[b, h, n] + moved) * unit
                value = square[b, h, n] + 2 * about * total[b, h, n] + moved * about
                squared[b, h, n] = max(value, 0.0) * unit * unit


def assemble(
    batch: TokenBatch,
    rules: Sequence[Rule],
    numbers: PairNumbers,
    reading: Reading,
    special: Special,
) -> PairStatistics:
    """Scale back, bin the distances and put chance beside."""
    chance = batch.remember(("pairs", special), lambda: chance_pairs(batch_chance(batch, special)))
    count = chance.count[:, None]  # (B, 1)
    once, twice = 2 * numbers.exponent, 4 * numbers.exponent  # (B, H)
    shift = numbers.shift  # (B, H)

    def unshifted(pairs: Counts, total: Values, square: Values) -> tuple[Values, Values]:
        """Sums of C and C² from sums about the shift, in true units."""
        plain, squared = np.empty((2, *total.shape))
        _unshift(pairs, shift, numbers.exponent, total, square, plain, squared)
        return plain, squared

    total, square = numbers.sums.sum(-1), numbers.squares.sum(-1)  # (B, H)
    mean, variance = mean_and_variance(count, shift, total, square, numbers.extremes)
    none = np.broadcast_to(count == 0, mean.shape)
    by_distance = unshifted(chance.by_distance, numbers.sums, numbers.squares)
    apart = chance.unrelated[:, None]  # (B, 1)
    far = np.where(apart[..., None] > 0, numbers.unrelated, 0)  # (B, H, 2)
    near = np.stack([total, square], -1) - far  # (B, H, 2)
    unrelated = unshifted(apart, far[..., :1], far[..., 1:])
    related = unshifted(count - apart, near[..., :1], np.maximum(near[..., 1:], 0))

    def high(rule: Rule, counted: HighNumbers) -> HighPairs:
        unknown = none | isinstance(rule, Nearest)
        return HighPairs(
            rule=rule,
            threshold=np.where(unknown, np.nan, np.ldexp(counted.reach, once)),
            count=counted.counters[..., COUNT],
            by_distance=counted.by_distance,
            same_sentence=counted.counters[..., SAME_SENTENCE],
            same_sentence_expected=counted.expected,
            same_token=counted.counters[..., SAME_TOKEN],
            same_word=counted.counters[..., SAME_WORD],
            special=counted.counters[..., SPECIAL],
            unrelated=counted.counters[..., UNRELATED],
            related_sum=np.ldexp(counted.sums[..., 0], once),
            unrelated_sum=np.ldexp(counted.sums[..., 1], once),
            taking_part=counted.taking_part,
            anchors=counted.anchors,
        )

    def true(value: Values, exponent: npt.NDArray[np.int32]) -> Values:
        return np.where(none, np.nan, np.ldexp(value, exponent))

    top = numbers.top
    return PairStatistics(
        reading=reading,
        special=special,
        chance=chance,
        mean=true(mean, once),
        variance=true(variance, twice),
        minimum=true(numbers.extremes[..., 0], once),
        maximum=true(numbers.extremes[..., 1], once),
        sum_by_distance=by_distance[0],
        square_by_distance=by_distance[1],
        related_sum=related[0][..., 0],
        related_square=related[1][..., 0],
        unrelated_sum=unrelated[0][..., 0],
        unrelated_square=unrelated[1][..., 0],
        high=tuple(high(rule, counted) for rule, counted in zip(rules, numbers.high, strict=True)),
        top=top and TopPairs(top.first, top.second, np.ldexp(top.value, once[..., None])),
    )
