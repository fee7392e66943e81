"""The change points, against every possible way to cut and against ruptures."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from headscope.segment import changes
from headscope.segment.changes import cut_into, cut_with, gains


def total(vectors, worth, cuts):
    edges = [0, *cuts, len(vectors)]
    inside = [vectors[a:b].sum(axis=0) for a, b in pairwise(edges)]
    gained = sum(s @ s / (b - a) for s, (a, b) in zip(inside, pairwise(edges), strict=True))
    return gained + sum(worth[cut] for cut in cuts)


def some_units(seed, units=9, size=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(units, size)).astype(np.float32), rng.normal(size=units)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shortest", [1, 2])
def test_the_best_of_all_ways_to_cut_is_found(seed, shortest):
    vectors, worth = some_units(seed)
    ways = [
        [*cuts]
        for count in range(1, 5)
        for cuts in combinations(range(1, 9), count - 1)
        if min(b - a for a, b in pairwise([0, *cuts, 9])) >= shortest
    ]
    for count in (1, 2, 3, 4):
        best = max(
            (way for way in ways if len(way) == count - 1), key=lambda w: total(vectors, worth, w)
        )
        assert cut_into(count, vectors, worth, shortest) == best


@pytest.mark.parametrize("seed", range(12))
def test_a_penalty_buys_the_boundaries_that_are_worth_it(seed):
    vectors, worth = some_units(seed)
    ways = [[*cuts] for count in range(9) for cuts in combinations(range(1, 9), count)]
    best = max(ways, key=lambda way: total(vectors, worth, way) - 1.5 * len(way))
    assert cut_with(1.5, vectors, worth) == best


def test_ruptures_agrees():
    ruptures = pytest.importorskip("ruptures")
    vectors, _ = some_units(3, units=80, size=4)
    vectors[30:] += 1
    vectors[55:] -= 2
    found = ruptures.KernelCPD("linear", min_size=2).fit(vectors).predict(n_bkps=4)
    assert cut_into(5, vectors, np.zeros(80), 2) == found[:-1]


def test_blocks_of_the_kernel_do_not_show(monkeypatch):
    vectors, worth = some_units(5, units=70)
    whole = cut_into(6, vectors, worth), cut_with(2.0, vectors, worth)
    monkeypatch.setattr(changes, "BLOCK", 7)
    assert (cut_into(6, vectors, worth), cut_with(2.0, vectors, worth)) == whole


def test_a_longest_segment_is_kept_to(monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 10)
    vectors, _ = some_units(5, units=64)
    cuts = cut_with(100.0, vectors, np.zeros(64))
    assert max(b - a for a, b in pairwise([0, *cuts, 64])) == 10


def test_more_segments_than_fit_become_as_many_as_can_be():
    vectors, worth = some_units(0)
    assert cut_into(50, vectors, worth) == list(range(1, 9))
    assert len(cut_into(50, vectors, worth, shortest=3)) == 2


def test_too_many_states_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(changes, "MOST_STATES", 20)
    vectors, worth = some_units(0)
    with pytest.raises(ValueError, match="granularity"):
        cut_into(3, vectors, worth)


def test_a_gain_is_what_merging_would_lose_or_splitting_would_win():
    vectors, _ = some_units(2)
    nothing = np.zeros(9)
    found = gains(vectors, [3, 6])
    now = total(vectors, nothing, [3, 6])
    assert found[0] == 0
    assert found[3] == pytest.approx(now - total(vectors, nothing, [6]), abs=1e-5)
    assert found[4] == pytest.approx(total(vectors, nothing, [3, 4, 6]) - now, abs=1e-5)
