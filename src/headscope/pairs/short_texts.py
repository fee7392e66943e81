"""All passes over several heads of a short text in one compiled call.

A short text has little work in each pass, so that calling them one by one would cost as much.
"""

import numpy as np

from headscope.pairs.assemble import COUNT
from headscope.pairs.compiled import exact
from headscope.pairs.passes import (
    BLANK,
    Numbers,
    Panel,
    add_up,
    blank,
    collect_top,
    count_above,
    count_around,
    count_high,
    count_listed_around,
    find_anchors,
    into_bins,
    kth_of_one_panel,
)


@exact
def _one_head(
    panel: Panel,
    shift: float,
    kept: Numbers,
    sentence: Numbers,
    token: Numbers,
    word: Numbers,
    ordinary: Numbers,
    inside_share: Numbers,  # (S,) float64
    types: Numbers,  # (K, S) int32
    uppers: Numbers,
    ranks: Numbers,  # (n,) int64: of the rules, and last of the top pairs where there are any
    most: int,
    sums: Numbers,  # (D,) float64
    squares: Numbers,  # (D,) float64
    unrelated: Numbers,  # (2,) float64
    extremes: Numbers,  # (2,) float64
    reach: Numbers,  # (n,) float64
    counters: Numbers,  # (rules, COUNTERS) int64
    by_bin: Numbers,  # (rules, D) int64
    expected: Numbers,  # (rules,) float64
    taking_part: Numbers,  # (rules, S) int64
    high_sums: Numbers,  # (rules, 2) float64
    anchors: Numbers,  # (rules, K, 3) int64
) -> bool:
    """Every number of a head whose C is one panel, where all rules are quantiles, in one call.

    False, with nothing but the sums done, where too many values share a level.
    """
    size = len(kept)
    total, square = np.zeros(size), np.zeros(size)
    ends = np.array([-BLANK, BLANK], np.float32)
    add_up(panel, 0, shift, kept, sentence, word, ordinary, total, square, unrelated, ends)
    extremes[0], extremes[1] = ends[0], ends[1]
    into_bins(total, uppers, sums)
    into_bins(square, uppers, squares)
    low, high = np.float64(ends[0]), np.float64(ends[1])
    values = np.empty(len(ranks), np.float32)
    if low == high:
        values[:] = ends[0]
    elif not kth_of_one_panel(panel, low, high, ranks, most, values):
        return False
    reach[: len(values)] = values
    limits = np.empty(size, np.float32)
    by_distance = np.empty(size, np.int64)
    near = np.empty(size, np.uint8)
    # Room for twice the highest rank: more is needed only where very many pairs are equal.
    listed = np.empty((2 * ranks.max() if len(types) else 0, 2), np.int32)
    for rule in range(len(counters)):
        limits[:] = values[rule]
        by_distance[:] = 0
        count_high(
            panel,
            0,
            limits,
            sentence,
            token,
            word,
            ordinary,
            counters[rule],
            by_distance,
            taking_part[rule],
            high_sums[rule],
            listed,
        )
        into_bins(by_distance, uppers, by_bin[rule])
        share = 0.0
        for distance in range(size):
            share += by_distance[distance] * inside_share[distance]
        expected[rule] = share
        if len(types):
            find_anchors(taking_part[rule], types, anchors[rule], near)
            found = counters[rule, COUNT]
            if found <= len(listed):
                count_listed_around(listed[:found], near, anchors[rule])
            else:
                count_around(panel, 0, limits, near, anchors[rule])
    return True


@exact
def add_heads(
    panels: Numbers,  # (heads, S, S) float32
    left_out: Numbers,  # tokens that take no part
    shifts: Numbers,  # (heads,)
    kept: Numbers,
    sentence: Numbers,
    token: Numbers,
    word: Numbers,
    ordinary: Numbers,
    inside_share: Numbers,
    types: Numbers,
    uppers: Numbers,
    ranks: Numbers,
    most: int,
    sums: Numbers,  # from here on as for one head, with the heads first
    squares: Numbers,
    unrelated: Numbers,
    extremes: Numbers,
    reach: Numbers,
    counters: Numbers,
    by_bin: Numbers,
    expected: Numbers,
    taking_part: Numbers,
    high_sums: Numbers,
    anchors: Numbers,
    number: int,  # of top pairs
    first: Numbers,  # (heads, N)
    second: Numbers,
    value: Numbers,
    done: Numbers,  # (heads,) bool
) -> None:
    """Every number of some heads and their top pairs; not done where too many share a level."""
    for h in range(len(panels)):
        panel = panels[h]
        blank(panel, 0, left_out)
        done[h] = _one_head(
            panel,
            shifts[h],
            kept,
            sentence,
            token,
            word,
            ordinary,
            inside_share,
            types,
            uppers,
            ranks,
            most,
            sums[h],
            squares[h],
            unrelated[h],
            extremes[h],
            reach[h],
            counters[h],
            by_bin[h],
            expected[h],
            taking_part[h],
            high_sums[h],
            anchors[h],
        )
        if done[h] and number:
            limit = np.float32(reach[h, -1])
            ties = number - count_above(panel, 0, limit, 0)
            filled, _ = collect_top(panel, 0, limit, ties, first[h], second[h], value[h], 0)
            order = np.argsort(-value[h, :filled], kind="mergesort")
            first[h, :filled] = first[h, :filled][order]
            second[h, :filled] = second[h, :filled][order]
            value[h, :filled] = value[h, :filled][order]
