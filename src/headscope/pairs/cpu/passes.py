"""The numba passes over a panel of C: some rows i0, i0 + 1, … of the upper triangle.

`panel[r, j]` is the similarity of tokens i0 + r and j, for j > i0 + r; nothing else is read. Pairs
that do not take part hold `BLANK`. Each pass adds to arrays that the caller keeps, so a matrix can
come in one panel or in many. The loops are cut so that LLVM makes vectors of them: a look at
`CHUNK` values at once skips the many that no pass wants one by one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.compute.compiled import exact, fast
from headscope.pairs.assemble import (
    COUNT,
    LARGE,
    REPEATED,
    SAME_SENTENCE,
    SAME_TOKEN,
    SAME_WORD,
    SPECIAL,
    UNRELATED,
    UNRESOLVED,
)
from headscope.pairs.tokens import AROUND, UNRELATED_DISTANCE

Panel = npt.NDArray[np.float32]
Numbers = npt.NDArray[Any]

BLANK = np.finfo(np.float32).min
LEVELS = 4096
CHUNK = 16
# Rows of the labels (5, S) of tokens.
SENTENCES, TOKENS, WORDS, OCCURRENCES, CLASSES = range(5)


@exact
def blank(panel: Panel, i0: int, left_out: Numbers) -> None:
    """Take the pairs of some tokens out of a panel."""
    for token in left_out:
        panel[:, token] = BLANK
        if i0 <= token < i0 + panel.shape[0]:
            panel[token - i0, :] = BLANK


@fast
def add_up(
    panel: Panel,
    i0: int,
    shift: float,
    kept: Numbers,  # (S,) float32, 1 for tokens that take part and 0 for others
    sentence: Numbers,  # (S,)
    word: Numbers,  # (S,)
    ordinary: Numbers,  # (S,) float32, 1 for tokens that are not special
    sums: Numbers,  # (S,) float64, by distance, of C - shift
    square: Numbers,  # (1,) float64, of (C - shift)²
    unrelated: Numbers,  # (2,) float64, the same two sums over unrelated pairs
    extremes: Numbers,  # (2,) float32, minimum and maximum
) -> None:
    """Sums by distance, sums over unrelated pairs, minimum and maximum."""
    size, zero = len(kept), np.float32(0)
    lows, highs = np.full(size, -BLANK), np.full(size, BLANK)  # (S,) by column: vectors, no chain
    for r in range(min(panel.shape[0], size - i0)):
        i = i0 + r
        if kept[i] == zero:
            continue
        row, weight, later = panel[r, i + 1 : size], kept[i + 1 :], size - i - 1
        total, own = sums[1 : later + 1], 0.0
        for n in range(later):
            x = (np.float64(row[n]) - shift) * np.float64(weight[n])
            total[n] += x
            own += x * x
        square[0] += own
        low, high = lows[i + 1 :], highs[i + 1 :]
        for n in range(later):
            c = row[n]
            high[n] = c if c > high[n] else high[n]
            low[n] = c if c < low[n] and weight[n] != zero else low[n]
        if ordinary[i] == 0 or later <= UNRELATED_DISTANCE:
            continue
        start = i + 1 + UNRELATED_DISTANCE
        row, plain = panel[r, start:size], ordinary[start:]
        sentences, words, own_sentence, own_word = (
            sentence[start:],
            word[start:],
            sentence[i],
            word[i],
        )
        far, far_square = 0.0, 0.0
        for n in range(size - start):
            apart = (sentences[n] != own_sentence) & (words[n] != own_word) & (plain[n] != zero)
            x = np.float64(row[n]) - shift if apart else np.float64(0)
            far += x
            far_square += x * x
        unrelated[0] += far
        unrelated[1] += far_square
    extremes[0], extremes[1] = min(extremes[0], lows.min()), max(extremes[1], highs.max())


@exact
def _level(value: np.float32, low: float, high: float, scale: float) -> np.int32:
    """The level of a value between low and high, LEVELS for any other value.

    It never falls when the value rises: each step of the arithmetic keeps the order.
    """
    wide = np.float64(value)
    level = np.int32(min(max((wide - low) * scale, 0.0), LEVELS - 1.0))
    return level if (wide >= low) & (wide <= high) else np.int32(LEVELS)


@exact
def skip(row: Panel, start: int, bound: np.float32) -> int:
    """The first of the places start, start + CHUNK, … with a value up to the next that reaches."""
    while start + CHUNK <= len(row):
        part, some = row[start : start + CHUNK], np.int32(0)
        for n in range(CHUNK):
            some = np.int32(some | np.int32(part[n] >= bound))
        if some:
            return start
        start += CHUNK
    return start


@exact
def find_level(counts: Numbers, rank: int) -> tuple[int, int]:
    """The level of the value of some rank from above, and its rank in that level."""
    level = LEVELS - 1
    while rank > counts[level]:
        rank -= counts[level]
        level -= 1
    return level, rank


@exact
def count_levels(
    panel: Panel, i0: int, low: float, high: float, scale: float, counts: Numbers
) -> None:
    """Count the values by level; the last of counts (LEVELS + 1,) is for values outside."""
    size = panel.shape[1]
    levels = np.empty(size, np.int32)
    for r in range(min(panel.shape[0], size - i0)):
        row = panel[r, i0 + r + 1 : size]
        for n in range(len(row)):
            levels[n] = _level(row[n], low, high, scale)
        for n in range(len(row)):
            counts[np.uint32(levels[n])] += 1


@exact
def bound_of(level: int, low: float, scale: float) -> np.float32:
    """A little less than any value of a level."""
    below: np.float32 = np.nextafter(np.float32(low + (level - 0.01) / scale), BLANK)
    return below


@exact
def collect_levels(
    panel: Panel,
    i0: int,
    low: float,
    high: float,
    scale: float,
    wanted: Numbers,  # (LEVELS + 1,) bool
    bound: np.float32,  # not above any value of a wanted level
    values: Numbers,  # float32, as long as the count of the wanted levels
    filled: int,
) -> int:
    """Write the values of the wanted levels one after the other; returns how many there are."""
    size = panel.shape[1]
    for r in range(min(panel.shape[0], size - i0)):
        row = panel[r, i0 + r + 1 : size]
        start = skip(row, 0, bound)
        while start < len(row):
            for n in range(start, min(start + CHUNK, len(row))):
                if wanted[np.uint32(_level(row[n], low, high, scale))]:
                    values[filled] = row[n]
                    filled += 1
            start = skip(row, start + CHUNK, bound)
    return filled


@exact
def kth_of_one_panel(
    panel: Panel, low: float, high: float, ranks: Numbers, most: int, found: Numbers
) -> bool:
    """Find the values of some ranks from above; false where a level holds more than `most`."""
    scale = LEVELS / (high - low)
    counts = np.zeros(LEVELS + 1, np.int64)
    count_levels(panel, 0, low, high, scale, counts)
    for n in range(len(ranks)):
        level, rank = find_level(counts, ranks[n])
        if counts[level] > most:
            return False
        wanted = np.zeros(LEVELS + 1, np.bool_)
        wanted[level] = True
        values = np.empty(counts[level], np.float32)
        collect_levels(panel, 0, low, high, scale, wanted, bound_of(level, low, scale), values, 0)
        values.sort()
        found[n] = values[len(values) - rank]
    return True


@exact
def extremes_of_level(
    panel: Panel, i0: int, low: float, high: float, scale: float, level: int, extremes: Numbers
) -> None:
    """The smallest and the largest value of one level."""
    size = panel.shape[1]
    for r in range(min(panel.shape[0], size - i0)):
        row = panel[r, i0 + r + 1 : size]
        for n in range(len(row)):
            if _level(row[n], low, high, scale) == level:
                extremes[0] = min(extremes[0], row[n])
                extremes[1] = max(extremes[1], row[n])


@exact
def keep_nearest(panel: Panel, i0: int, best: Numbers, reach: Numbers) -> None:
    """Keep the k largest similarities of every token, best (S, k) falling; reach is the last."""
    size, k = best.shape
    for r in range(min(panel.shape[0], size - i0)):
        i = i0 + r
        row, reaches = panel[r, i + 1 : size], reach[i + 1 :]
        for n in range(len(row)):
            c = row[n]
            if c > reach[i] or c > reaches[n]:
                for token in (i, i + 1 + n):
                    if c > reach[token]:
                        place = k - 1
                        while place > 0 and best[token, place - 1] < c:
                            best[token, place] = best[token, place - 1]
                            place -= 1
                        best[token, place] = c
                        reach[token] = best[token, k - 1]


@exact
def find_large(lengths: Numbers, kept: Numbers, ranks: Numbers, found: Numbers) -> None:
    """Find products of two lengths (S,) that so many pairs reach, or a few more where some tie."""
    longest = np.sort(lengths[kept != np.float32(0)])[::-1]
    bounds = np.empty(3, np.float32)  # too many pairs reach the first, too few the second
    bits = bounds.view(np.int32)  # which rise with the floats
    for n in range(len(ranks)):
        some = 2  # so many of the longest have as many pairs as are wanted
        while some * (some - 1) // 2 < ranks[n]:
            some += 1
        bounds[0] = longest[some - 1] * longest[some - 2]
        bounds[1] = np.nextafter(longest[0] * longest[1], np.float32(np.inf))
        while some < len(longest) and longest[0] * longest[some] >= bounds[0]:
            some += 1
        while bits[1] - bits[0] > 1:
            bits[2] = bits[0] + (bits[1] - bits[0]) // 2
            reached, last = 0, some - 1
            for i in range(some):
                while last > i and longest[i] * longest[last] < bounds[2]:
                    last -= 1
                if last <= i:
                    break
                reached += last - i
            bits[0 if reached >= ranks[n] else 1] = bits[2]
            if reached == ranks[n]:
                break
        found[n] = bounds[0]


@exact
def kinds_of(
    i: int, j: int, labels: Numbers, ordinary: Numbers
) -> tuple[bool, bool, bool, bool, bool]:
    """Whether a pair is of one sentence, token type, repeated word, has a special end, or none."""
    same_sentence = labels[SENTENCES, i] == labels[SENTENCES, j]
    one_word = labels[WORDS, i] == labels[WORDS, j]
    same_word = one_word & (labels[OCCURRENCES, i] != labels[OCCURRENCES, j])
    special = (ordinary[i] == 0) | (ordinary[j] == 0)
    unrelated = (j - i > UNRELATED_DISTANCE) & ~(same_sentence | one_word | special)
    return same_sentence, labels[TOKENS, i] == labels[TOKENS, j], same_word, special, unrelated


@exact
def count_high(
    panel: Panel,
    i0: int,
    reach: Numbers,  # (S,) float32, threshold of each token, above BLANK
    labels: Numbers,
    ordinary: Numbers,
    lengths: Numbers,  # (S,) float32
    rounding: Numbers,  # (S,) float32
    large: np.float32,  # product of two lengths from which on they are large
    counters: Numbers,  # (COUNTERS,) int64
    by_distance: Numbers,  # (S,) int64
    taking_part: Numbers,  # (S,) int64
) -> None:
    """Count the high pairs in every way that is asked of them."""
    size, lowest = panel.shape[1], reach.min()
    for r in range(min(panel.shape[0], size - i0)):
        i, row = i0 + r, panel[r]
        start = skip(row, i + 1, lowest)
        while start < size:
            for j in range(start, min(start + CHUNK, size)):
                c = row[j]
                if c < reach[i] and c < reach[j]:
                    continue
                by_distance[j - i] += 1
                taking_part[i] += 1
                taking_part[j] += 1
                same_sentence, same_token, same_word, special, unrelated = kinds_of(
                    i, j, labels, ordinary
                )
                counters[COUNT] += 1
                counters[SAME_SENTENCE] += same_sentence
                counters[SAME_TOKEN] += same_token
                counters[SAME_WORD] += same_word
                counters[REPEATED + max(labels[CLASSES, i], labels[CLASSES, j])] += same_word
                counters[SPECIAL] += special
                counters[UNRELATED] += unrelated
                counters[UNRESOLVED] += c - min(reach[i], reach[j]) <= rounding[i] * rounding[j]
                counters[LARGE] += lengths[i] * lengths[j] >= large
            start = skip(row, start + CHUNK, lowest)


@exact
def find_anchors(
    taking_part: Numbers,  # (S, or more) int64
    types: Numbers,  # (K, S) int32, where the type of each token first occurs
    anchors: Numbers,  # (K, 3) int64: the first place of the leading type, its ends; see below
    near: Numbers,  # (S,) uint8 out: in bit k, whether a token is near a leading type of kind k
) -> None:
    """Find the type of each kind that most ends are of, and which tokens are near it."""
    size = types.shape[1]
    ends = np.empty(size, np.int64)
    near[:] = 0
    for kind in range(len(types)):
        own, best, bit = types[kind], 0, np.uint8(1 << kind)
        ends[:] = 0
        for s in range(size):
            ends[own[s]] += taking_part[s]
        for s in range(size):
            if ends[s] > ends[best]:
                best = s
        anchors[kind, 0], anchors[kind, 1] = best if ends[best] else -1, ends[best]
        for s in range(size):
            if own[s] == best:
                for n in range(max(s - AROUND, 0), min(s + AROUND + 1, size)):
                    near[n] |= bit


@exact
def count_listed_around(listed: Numbers, near: Numbers, anchors: Numbers) -> None:
    """The same as `count_around`, where the list (n, 2) holds all high pairs."""
    having = np.zeros(1 << len(anchors), np.int64)  # pairs, by what they are near to
    for n in range(len(listed)):
        having[near[listed[n, 0]] | near[listed[n, 1]]] += 1
    for both in range(len(having)):
        for kind in range(len(anchors)):
            anchors[kind, 2] += ((both >> kind) & 1) * having[both]


@exact
def count_around(
    panel: Panel,
    i0: int,
    reach: Numbers,  # (S,) float32, threshold of each token, above BLANK
    near: Numbers,  # (S,) uint8
    anchors: Numbers,  # (K, 3) int64, the last of each: high pairs with an end near the type
) -> None:
    """Count the high pairs in the surroundings of the anchors."""
    size, lowest = panel.shape[1], reach.min()
    for r in range(min(panel.shape[0], size - i0)):
        i, row = i0 + r, panel[r]
        start = skip(row, i + 1, lowest)
        while start < size:
            for j in range(start, min(start + CHUNK, size)):
                if row[j] >= reach[i] or row[j] >= reach[j]:
                    both = near[i] | near[j]
                    for kind in range(len(anchors)):
                        anchors[kind, 2] += (both >> kind) & 1
            start = skip(row, start + CHUNK, lowest)


@exact
def count_above(panel: Panel, i0: int, reach: np.float32, above: int) -> int:
    """Count the pairs above reach."""
    size = panel.shape[1]
    for r in range(min(panel.shape[0], size - i0)):
        row = panel[r, i0 + r + 1 : size]
        for n in range(len(row)):
            above += row[n] > reach
    return above


@exact
def collect_top(
    panel: Panel,
    i0: int,
    reach: np.float32,
    ties: int,  # how many pairs equal to reach are still wanted
    first: Numbers,  # (N,) int64
    second: Numbers,  # (N,) int64
    value: Numbers,  # (N,) float64
    filled: int,
) -> tuple[int, int]:
    """Write down all pairs above reach and the first pairs equal to it, in order of position."""
    size = panel.shape[1]
    for r in range(min(panel.shape[0], size - i0)):
        i, row = i0 + r, panel[r]
        start = skip(row, i + 1, reach)
        while start < size:
            for j in range(start, min(start + CHUNK, size)):
                c = row[j]
                if c < reach or (c == reach and ties == 0):
                    continue
                ties -= c == reach
                first[filled], second[filled], value[filled] = i, j, c
                filled += 1
            start = skip(row, start + CHUNK, reach)
    return filled, ties


@exact
def into_bins(by_distance: Numbers, uppers: Numbers, binned: Numbers) -> None:
    """Add values (S,), entry D belonging to distance D, to bins with these largest distances."""
    place = 0
    for distance in range(1, len(by_distance)):
        if distance > uppers[place]:
            place += 1
        binned[place] += by_distance[distance]
