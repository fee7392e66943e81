"""How many segments are expected, against every way to cut; and cutting near a number."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from headscope.segment.changes import (
    cut_into,
    cut_near,
    cut_with,
    cut_with_each,
    gains,
    most_segments,
    without_least,
)
from headscope.segment.consensus import agree_into
from headscope.segment.ways import FEWEST, Ways

UNITS = 9


def some_units(seed, units=UNITS):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(units, 3)).astype(np.float32), rng.normal(size=units)


def with_some_places(worth, seed):
    """Two of three places forbidden."""
    closed = np.random.default_rng(seed).permutation(np.arange(1, len(worth)))[::3]
    made = np.full(len(worth), -np.inf)
    made[closed] = worth[closed]
    made[0] = 0.0
    return made


def every_way(worth, shortest):
    places = [place for place in range(1, UNITS) if not np.isneginf(worth[place])]
    return [
        list(cuts)
        for count in range(len(places) + 1)
        for cuts in combinations(places, count)
        if min(b - a for a, b in pairwise([0, *cuts, UNITS])) >= shortest
    ]


def total(vectors, worth, cuts):
    inside = [vectors[a:b].sum(axis=0) for a, b in pairwise([0, *cuts, UNITS])]
    gained = sum(
        float(s @ s) / (b - a)
        for s, (a, b) in zip(inside, pairwise([0, *cuts, UNITS]), strict=True)
    )
    return gained + sum(worth[cut] for cut in cuts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shortest", [1, 2])
@pytest.mark.parametrize("closed", [False, True])
def test_the_number_expected_is_the_mean_over_all_ways_to_cut(seed, shortest, closed):
    vectors, worth = some_units(seed)
    worth = with_some_places(worth, seed) if closed else worth
    every = every_way(worth, shortest)
    totals = np.array([total(vectors, worth, way) - 1.5 * len(way) for way in every])
    weights = np.exp(0.7 * (totals - totals.max()))
    expected = max(FEWEST, weights @ [len(way) for way in every] / weights.sum())
    ways = Ways(vectors, worth, penalty=1.5, sharpness=0.7, shortest=shortest)
    for granularity in (0.5, 1.0, 3.0):
        most = max(map(len, every))
        assert ways.segments(granularity) == 1 + int(min(granularity * expected + 0.5, most))


@pytest.mark.parametrize("seed", range(4))
def test_a_price_is_lower_where_more_boundaries_are_expected(seed):
    vectors, worth = some_units(seed, 40)
    ways = Ways(0.5 * vectors, worth, penalty=2.0, sharpness=1.5)
    counts = range(ways.segments(1.0), ways.segments(1.0) + 8)
    prices = [ways.price(count) for count in counts]
    assert prices[0] == 2.0
    assert all(a >= b for a, b in pairwise(prices))
    assert prices[1] < 2.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shortest", [1, 2])
def test_no_boundary_is_where_there_is_no_place_for_one(seed, shortest):
    vectors, worth = some_units(seed)
    worth = with_some_places(worth, seed)
    every = every_way(worth, shortest)
    assert most_segments(worth, shortest) == 1 + max(map(len, every))
    for count in (2, 3, 9):
        for into in (cut_into, agree_into):
            assert into(count, vectors, worth, shortest) in every
    assert cut_with(0.1, vectors, worth, shortest) in every


def test_several_penalties_at_once_are_each_of_them_alone():
    vectors, worth = some_units(1, 60)
    penalties = [0.5, 1.0, 2.0, 4.0]
    assert cut_with_each(penalties, vectors, worth, 2) == [
        cut_with(penalty, vectors, worth, 2) for penalty in penalties
    ]


@pytest.mark.parametrize("count", [1, 2, 7, 15, 30])
def test_a_number_is_met_near_the_best_way_to_cut(count):
    vectors, worth = some_units(4, 60)
    cuts = cut_near(count, 2.0, vectors, worth, 2)
    assert len(cuts) == count - 1

    def value(way):
        edges = [0, *way, 60]
        inside = [vectors[a:b].sum(axis=0) for a, b in pairwise(edges)]
        lengths = np.diff(edges)
        return sum(s @ s / n for s, n in zip(inside, lengths, strict=True)) + worth[way].sum()

    best = value(cut_into(count, vectors, worth, 2))
    assert value(cuts) >= best - 0.1 * abs(best)


def test_the_boundaries_that_are_worth_least_are_dropped_first():
    vectors, worth = some_units(5, 30)
    cuts = list(range(2, 30, 3))
    while len(cuts) > 3:
        scores = (gains(vectors, cuts) + worth)[cuts]
        expected = [cut for i, cut in enumerate(cuts) if i != int(np.argmin(scores))]
        assert without_least(cuts, len(cuts) - 1, vectors, worth) == expected
        cuts = expected
    assert without_least(list(range(2, 30, 3)), 3, vectors, worth) == cuts
