"""The numba pass over some rows of attention scores: softmax and every sum in one go.

The exponential is written out as a polynomial, because then LLVM makes vectors of it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.attention.statistics import ROW_SUMS
from headscope.compute.compiled import fast

Numbers = npt.NDArray[Any]

ENTROPY, MAXIMUM, OWN, PREVIOUS, NEXT, OWN_SENTENCE = range(len(ROW_SUMS))
NO_SINK = np.float32(-1e30)

LOG2E = np.float32(1.4426950408889634)
SMALLEST = np.float32(-125.0)  # log2 of the smallest weight beside the largest of its row
# 2^f for -1/2 <= f <= 1/2 by its Taylor terms (ln 2)^n / n!; the error is that of float32.
P1, P2, P3, P4, P5, P6 = (
    np.float32(0.6931471805599453),
    np.float32(0.2402265069591007),
    np.float32(0.05550410866482158),
    np.float32(0.009618129107628477),
    np.float32(0.0013333558146428443),
    np.float32(0.00015403530393381608),
)


@fast
def _highest(keys: Numbers) -> np.float32:
    """The largest of some float32 values, given as their bits.

    As whole numbers of the same order, because LLVM makes no vector of a maximum of floats.
    """
    sign = np.int32(0x7FFFFFFF)
    best = np.int32(-(2**31) + 1)
    for n in range(len(keys)):
        ordered = np.int32(keys[n] ^ ((keys[n] >> np.int32(31)) & sign))
        best = ordered if ordered > best else best
    return np.int32(best ^ ((best >> np.int32(31)) & sign)).view(np.float32)


@fast
def _weigh(row: Numbers, highest: np.float32) -> tuple[np.float32, np.float32]:
    """Turn scores s into weights w = exp(s - highest); returns Σ w and Σ w (s - highest)."""
    total, moment = np.float32(0), np.float32(0)
    for n in range(len(row)):
        below = (row[n] - highest) * LOG2E
        below = below if below > SMALLEST else SMALLEST
        whole = np.floor(below + np.float32(0.5))
        f = below - whole
        series = P3 + f * (P4 + f * (P5 + f * P6))
        power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
        weight = (np.float32(1) + f * (P1 + f * (P2 + f * series))) * power
        row[n] = weight
        total += weight
        moment += weight * below
    return total, moment / LOG2E


@fast
def add_rows(
    scores: Numbers,  # (rows, S) float32; destroyed
    i0: int,
    causal: bool,
    window: int,
    sink: np.float32,
    sentence: Numbers,  # (S,) int32
    row_class: Numbers,  # (S,) int32
    members: Numbers,  # positions of the tokens of every class but the largest, class by class
    starts: Numbers,  # (K + 1,) where the positions of each class start in members
    largest: int,  # the class left out of members: it has what the others leave
    mass: Numbers,  # (K, K) float64
    sums: Numbers,  # (6, K) float64, in the order of ROW_SUMS
    columns: Numbers,  # (S,) float64
) -> None:
    """Add the rows i0, i0 + 1, … of the attention of one head to its sums."""
    size, classes = scores.shape[1], len(mass)
    keys = scores.view(np.int32)
    for r in range(min(scores.shape[0], size - i0)):
        i = i0 + r
        first = max(0, i - window + 1)
        end = i + 1 if causal else min(size, i + window)
        row = scores[r, first:end]
        highest = max(_highest(keys[r, first:end]), sink)
        tokens, moment = _weigh(row, highest)
        total = tokens + (np.exp(sink - highest) if sink > NO_SINK else np.float32(0))
        share = np.float32(1) / total
        column = columns[first:end]
        inside, own_sentence, sentences = np.float32(0), sentence[i], sentence[first:end]
        for n in range(len(row)):
            column[n] += np.float64(row[n] * share)
            inside += row[n] if sentences[n] == own_sentence else np.float32(0)
        kind = row_class[i]
        rest = tokens
        for k in range(classes):
            sent = np.float32(0)
            for m in range(starts[k], starts[k + 1]):
                j = members[m]
                if first <= j < end:
                    sent += row[j - first]
            rest -= sent
            mass[kind, k] += sent * share
        mass[kind, largest] += max(rest, np.float32(0)) * share
        biggest = np.float32(1)
        if sink > NO_SINK:
            biggest = row.max()
        sums[ENTROPY, kind] += (np.log(total) * tokens - moment) * share
        sums[MAXIMUM, kind] += biggest * share
        sums[OWN, kind] += row[i - first] * share
        sums[OWN_SENTENCE, kind] += inside * share
        if i > first:
            sums[PREVIOUS, kind] += row[i - 1 - first] * share
        if i + 1 < end:
            sums[NEXT, kind] += row[i + 1 - first] * share


@fast
def add_heads(
    scores: Numbers,  # (heads, S, S) float32; destroyed
    sinks: Numbers,  # (heads,) float32
    sentence: Numbers,
    row_class: Numbers,
    members: Numbers,
    starts: Numbers,
    largest: int,
    mass: Numbers,  # (heads, K, K)
    sums: Numbers,  # (heads, 6, K)
    columns: Numbers,  # (heads, S)
) -> None:
    """Add the whole attention of some heads to their sums."""
    size = scores.shape[1]
    for h in range(len(scores)):
        own = (mass[h], sums[h], columns[h])
        add_rows(
            scores[h], 0, False, size, sinks[h], sentence, row_class, members, starts, largest, *own
        )
