"""Heads of a short text, where all rules are quantiles: every number in one compiled call.

C is there whole and is gone over twice: once to add up, once to write down the candidates, pairs
from a little below the threshold on. The threshold, the high pairs and all that is counted of them
come from that short list. Pairs between ordinary tokens come first, which is all there is where
special tokens are left out; those with a special end are then added, where they are kept.
"""

import numpy as np

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
from headscope.pairs.cpu.passes import (
    BLANK,
    CHUNK,
    CLASSES,
    Numbers,
    Panel,
    count_listed_around,
    find_anchors,
    find_large,
    into_bins,
    kinds_of,
    skip,
)
from headscope.pairs.tokens import UNRELATED_DISTANCE

SAMPLED = 1024  # pairs that say about where the threshold is
MOST_SAMPLED = 0.1  # share of pairs that are high from which on sampling does not pay


@exact
def far_and_related(sentence: Numbers, word: Numbers, ordinary: Numbers) -> Numbers:
    """The pairs (n, 2) that would be unrelated, were they not of one sentence or of one word."""
    size, found = len(sentence), 0
    listed = np.empty((1024, 2), np.int32)
    for i in range(size):
        own_sentence, own_word = sentence[i], word[i]
        for start in range(i + 1 + UNRELATED_DISTANCE, size if ordinary[i] else 0, CHUNK):
            end, some = min(start + CHUNK, size), False
            for j in range(start, end):
                some |= (sentence[j] == own_sentence) | (word[j] == own_word)
            for j in range(start, end if some else start):
                related = (sentence[j] == own_sentence) | (word[j] == own_word)
                if found == len(listed):
                    longer = np.empty((2 * found, 2), np.int32)
                    longer[:found] = listed
                    listed = longer
                listed[found, 0], listed[found, 1] = i, j
                found += related & (ordinary[j] != 0)
    return listed[:found].copy()


@exact
def _set_aside(panel: Panel, special: Numbers, fill: np.float32, aside: Numbers) -> None:
    """Move the similarities of special tokens to aside (special, S), and fill their places."""
    for n in range(len(special)):
        s = special[n]
        aside[n, :s] = panel[:s, s]
        aside[n, s + 1 :] = panel[s, s + 1 :]
    for s in special:
        panel[:s, s] = fill
        panel[s, s + 1 :] = fill


@fast
def _two_rows(
    one: Panel, other: Panel, begin: int, end: int, shift: float, totals: Numbers
) -> float:
    """Add two rows to totals by distance; the sum of their squares."""
    squares = 0.0
    one, other, totals = one[begin:end], other[begin:end], totals[begin:end]
    for n in range(end - begin):
        x, y = np.float64(one[n]) - shift, np.float64(other[n]) - shift
        totals[n] += x + y
        squares += x * x + y * y
    return squares


@fast
def _add_up(panel: Panel, shift: float, totals: Numbers, squares: Numbers) -> None:
    """Sums of C - shift by distance (S,), and of its squares (2,): up to 32 apart, and beyond."""
    size, near, far = len(panel), 0.0, 0.0
    first = size % 2  # where one row is left over, it is the first
    if first and size > 1:
        for n in range(size - 1):
            x = np.float64(panel[0, n + 1]) - shift
            totals[n + 1] += x
            near += x * x if n < UNRELATED_DISTANCE else 0.0
            far += x * x if n >= UNRELATED_DISTANCE else 0.0
    for i in range(first, size - 1, 2):
        one, other = panel[i, i + 1 :], panel[i + 1, i + 2 :]
        both = len(other)
        edge = min(both, UNRELATED_DISTANCE)
        near += _two_rows(one, other, 0, edge, shift, totals[1:])
        far += _two_rows(one, other, edge, both, shift, totals[1:])
        x = np.float64(one[both]) - shift  # the first of the two is longer by one
        totals[both + 1] += x
        near += x * x if both < UNRELATED_DISTANCE else 0.0
        far += x * x if both >= UNRELATED_DISTANCE else 0.0
    squares[0], squares[1] = near, far


@fast
def _unrelated(
    panel: Panel, shift: float, related: Numbers, totals: Numbers, far: float, unrelated: Numbers
) -> None:
    """Sums of C - shift and of its squares over unrelated pairs: all far ones but those related."""
    total, square = 0.0, 0.0
    for n in range(UNRELATED_DISTANCE + 1, len(totals)):
        total += totals[n]
    for n in range(len(related)):
        x = np.float64(panel[related[n, 0], related[n, 1]]) - shift
        total -= x
        square += x * x
    unrelated[0], unrelated[1] = total, far - square


@exact
def _edge(panel: Panel, share: float) -> np.float32:
    """A value that a few more pairs reach than the share that is asked for, as a sample says."""
    size = len(panel)
    pairs = size * (size - 1) // 2
    step = max(1, pairs // SAMPLED)
    expected = share * (pairs // step)
    rank = int(1.3 * expected + 3 * np.sqrt(expected) + 2)
    if share > MOST_SAMPLED or rank >= pairs // step:
        return BLANK
    best = np.full(rank, BLANK, np.float32)
    place = 0
    for i in range(size - 1):
        row = panel[i, i + 1 :]
        while place < len(row):
            value = row[place]
            if value > best[-1]:
                n = rank - 1
                while n > 0 and best[n - 1] < value:
                    best[n] = best[n - 1]
                    n -= 1
                best[n] = value
            place += step
        place -= len(row)
    least: np.float32 = best[-1]
    return least


@exact
def _collect(
    panel: Panel, edge: np.float32, ordinary: Numbers, pairs: Numbers, values: Numbers
) -> int:
    """Write down the pairs of ordinary tokens that reach an edge; how many there are."""
    size, filled = len(panel), 0
    for i in range(size):
        if ordinary[i] == 0:
            continue
        row = panel[i]
        start = skip(row, i + 1, edge)
        while start < size:
            for j in range(start, min(start + CHUNK, size)):
                if row[j] >= edge:  # one of many: to write down all, and keep some, took longer
                    pairs[filled, 0], pairs[filled, 1], values[filled] = i, j, row[j]
                    filled += ordinary[j] != 0
            start = skip(row, start + CHUNK, edge)
    return filled


@exact
def _add_special(
    aside: Numbers,
    special: Numbers,
    ordinary: Numbers,
    shift: float,
    totals: Numbers,
    edge: np.float32,
    pairs: Numbers,
    values: Numbers,
    filled: int,
) -> tuple[float, int]:
    """Add the pairs with a special end to the totals and to the candidates; their squares."""
    squares = 0.0
    for n in range(len(special)):
        s = special[n]
        for t in range(len(ordinary)):
            if t == s or (ordinary[t] == 0 and t < s):
                continue
            c = aside[n, t]
            x = np.float64(c) - shift
            totals[abs(t - s)] += x
            squares += x * x
            if c >= edge:
                pairs[filled, 0], pairs[filled, 1], values[filled] = min(s, t), max(s, t), c
                filled += 1
    return squares, filled


@exact
def _reach(values: Numbers, ranks: Numbers, found: Numbers) -> None:
    """The values of some ranks from above."""
    for n in range(len(ranks)):
        place = len(values) - ranks[n]
        found[n] = np.partition(values, place)[place]


@exact
def _count(
    pairs: Numbers,  # (n, 2) candidates
    values: Numbers,  # (n,) float32
    reach: np.float32,
    labels: Numbers,
    ordinary: Numbers,
    lengths: Numbers,
    rounding: Numbers,
    large: np.float32,
    counters: Numbers,
    by_distance: Numbers,
    taking_part: Numbers,
    high: Numbers,  # (n, 2) out: the high pairs
) -> None:
    """Count the candidates that are high, in numbers of this call: an array would be slow."""
    count, sentences, tokens, words, specials, apart, unresolved, larges = 0, 0, 0, 0, 0, 0, 0, 0
    for n in range(len(pairs)):
        if values[n] < reach:
            continue
        i, j = pairs[n, 0], pairs[n, 1]
        high[count, 0], high[count, 1] = i, j
        count += 1
        by_distance[j - i] += 1
        taking_part[i] += 1
        taking_part[j] += 1
        same_sentence, same_token, same_word, special, unrelated = kinds_of(i, j, labels, ordinary)
        sentences += same_sentence
        tokens += same_token
        words += same_word
        specials += special
        apart += unrelated
        unresolved += values[n] - reach <= rounding[i] * rounding[j]
        larges += lengths[i] * lengths[j] >= large
        if same_word:
            counters[REPEATED + max(labels[CLASSES, i], labels[CLASSES, j])] += 1
    counters[COUNT], counters[SAME_SENTENCE], counters[SAME_TOKEN] = count, sentences, tokens
    counters[SAME_WORD], counters[SPECIAL], counters[UNRELATED] = words, specials, apart
    counters[UNRESOLVED], counters[LARGE] = unresolved, larges


@exact
def _list_top(
    pairs: Numbers,
    values: Numbers,
    reach: np.float32,
    first: Numbers,
    second: Numbers,
    top: Numbers,
) -> None:
    """Write down the most similar pairs (N,), ties by position."""
    high = np.flatnonzero(values >= reach)
    place = pairs[high, 0] * np.int64(2**32) + pairs[high, 1]
    high = high[np.argsort(place, kind="mergesort")]
    high = high[np.argsort(-values[high], kind="mergesort")]
    for n in range(min(len(first), len(high))):
        first[n], second[n], top[n] = pairs[high[n], 0], pairs[high[n], 1], values[high[n]]


@exact
def _record(
    totals: Numbers,  # (S,) float64
    square: float,
    apart: Numbers,  # (2,) float64
    pairs: Numbers,
    values: Numbers,
    kept: Numbers,  # (S,) float32
    labels: Numbers,
    ordinary: Numbers,
    lengths: Numbers,
    rounding: Numbers,
    inside_share: Numbers,  # (S,) float64
    types: Numbers,  # (K, S) int32
    uppers: Numbers,
    ranks: Numbers,  # (rules + 1,): and last, how many pairs are listed
    sums: Numbers,  # (D,) float64, from here on as in `backend.Numbers`
    squares: Numbers,
    unrelated: Numbers,
    highest: Numbers,
    reach: Numbers,
    counters: Numbers,
    by_bin: Numbers,
    expected: Numbers,
    taking_part: Numbers,
    anchors: Numbers,
    first: Numbers,
    second: Numbers,
    top: Numbers,
) -> None:
    """Everything about one head under one setting of special tokens."""
    into_bins(totals, uppers, sums)
    squares[0], unrelated[:], highest[0] = square, apart, values.max()
    size, rules = len(kept), len(counters)
    found, large = np.empty((2, len(ranks)), np.float32)
    _reach(values, ranks if ranks[-1] else ranks[:-1], found)
    reach[:] = found
    find_large(lengths, kept, ranks[:rules], large)
    high = np.empty((len(pairs), 2), np.int32)
    by_distance, near = np.empty(size, np.int64), np.empty(size, np.uint8)
    for rule in range(rules):
        by_distance[:] = 0
        _count(
            pairs,
            values,
            found[rule],
            labels,
            ordinary,
            lengths,
            rounding,
            large[rule],
            counters[rule],
            by_distance,
            taking_part[rule],
            high,
        )
        into_bins(by_distance, uppers, by_bin[rule])
        for distance in range(size):
            expected[rule] += by_distance[distance] * inside_share[distance]
        if len(types):
            find_anchors(taking_part[rule], types, anchors[rule], near)
            count_listed_around(high[: counters[rule, COUNT]], near, anchors[rule])
    if ranks[-1]:
        _list_top(pairs, values, found[-1], first[: ranks[-1]], second, top)


@exact
def add_heads(
    panels: Numbers,  # (heads, S, S) float32: the upper triangles count
    pairs: Numbers,  # room for all pairs (n, 2) int32, and a few more
    values: Numbers,  # and for their similarities (n,) float32
    shifts: Numbers,  # (heads,)
    special: Numbers,  # tokens that are special
    related: Numbers,  # of `far_and_related`
    labels: Numbers,  # (5, S) int32
    ordinary: Numbers,  # (S,) float32, 1 for tokens that are not special
    types: Numbers,
    lengths: Numbers,  # (heads, S) float32
    rounding: Numbers,  # (heads, S) float32
    uppers: Numbers,
    with_special: Numbers,  # (settings,) whether special tokens are kept
    kept: Numbers,  # (settings, S) float32
    inside_share: Numbers,  # (settings, S) float64
    counts: Numbers,  # (settings,) pairs
    ranks: Numbers,  # (settings, rules + 1)
    sums: Numbers,  # from here on as in `backend.Numbers`, (heads, settings, …)
    squares: Numbers,
    unrelated: Numbers,
    highest: Numbers,
    reach: Numbers,
    counters: Numbers,
    by_bin: Numbers,
    expected: Numbers,
    taking_part: Numbers,
    anchors: Numbers,
    first: Numbers,
    second: Numbers,
    top: Numbers,
) -> None:
    """Every number of some heads, under some settings of special tokens."""
    heads, size, _ = panels.shape
    totals, near_and_far, apart = np.empty(size), np.empty(2), np.empty(2)
    aside = np.empty((len(special), size), np.float32)
    share = 0.0
    for s in range(len(counts)):
        share = max(share, ranks[s].max() / max(counts[s], 1))
    for h in range(heads):
        panel, shift = panels[h], np.float64(np.float32(shifts[h]))
        _set_aside(panel, special, np.float32(shift), aside)
        totals[:] = 0
        _add_up(panel, shift, totals, near_and_far)
        square = near_and_far.sum()
        _unrelated(panel, shift, related, totals, near_and_far[1], apart)
        edge = _edge(panel, share)
        found = _collect(panel, edge, ordinary, pairs, values)
        if found < ranks.max():
            edge = BLANK
            found = _collect(panel, edge, ordinary, pairs, values)
        for kept_special in range(2):
            if kept_special and with_special.any():
                more, found = _add_special(
                    aside, special, ordinary, shift, totals, edge, pairs, values, found
                )
                square += more
            for s in range(len(counts)):
                if counts[s] and with_special[s] == kept_special:
                    _record(
                        totals,
                        square,
                        apart,
                        pairs[:found],
                        values[:found],
                        kept[s],
                        labels,
                        ordinary,
                        lengths[h],
                        rounding[h],
                        inside_share[s],
                        types,
                        uppers,
                        ranks[s],
                        sums[h, s],
                        squares[h, s],
                        unrelated[h, s],
                        highest[h, s],
                        reach[h, s],
                        counters[h, s],
                        by_bin[h, s],
                        expected[h, s],
                        taking_part[h, s],
                        anchors[h, s],
                        first[h, s],
                        second[h, s],
                        top[h, s],
                    )
