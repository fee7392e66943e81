"""The consensus of all ways to cut, against every one of them."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from headscope.segment import consensus
from headscope.segment.changes import cut_into
from headscope.segment.consensus import PAIRS, SHARPNESS, agree_into, expected

UNITS = 11


def some_units(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(UNITS, 3)).astype(np.float32), rng.normal(size=UNITS)


def ways(count, shortest):
    return [
        cuts
        for cuts in combinations(range(1, UNITS), count - 1)
        if min(b - a for a, b in pairwise([0, *cuts, UNITS])) >= shortest
    ]


def probabilities(vectors, worth, every):
    def total(cuts):
        edges = [0, *cuts, UNITS]
        gained = sum(
            float(np.square(vectors[a:b].sum(axis=0)).sum()) / (b - a) for a, b in pairwise(edges)
        )
        return gained + sum(worth[cut] for cut in cuts)

    weights = SHARPNESS * np.array([total(cuts) for cuts in every])
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def segment_of(cuts):
    return np.searchsorted(cuts, np.arange(UNITS), side="right")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("count", "shortest"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 1)])
def test_what_is_expected_is_the_mean_over_all_ways_to_cut(seed, count, shortest):
    vectors, worth = some_units(seed)
    every = ways(count, shortest)
    p = probabilities(vectors, worth, every)
    boundary, together, apart = expected(count, vectors, worth, shortest)
    assert apart == round(UNITS / count / 2)
    is_boundary = np.array([np.isin(np.arange(UNITS), cuts) for cuts in every])
    np.testing.assert_allclose(boundary, p @ is_boundary, atol=1e-5)
    numbers = np.array([segment_of(cuts) for cuts in every])
    alike = numbers[:, apart:] == numbers[:, :-apart]
    np.testing.assert_allclose(together, p @ alike, atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("count", "shortest"), [(3, 2), (4, 1), (5, 2)])
def test_no_other_way_to_cut_agrees_more(seed, count, shortest):
    vectors, worth = some_units(seed)
    boundary, together, apart = expected(count, vectors, worth, shortest)

    def agreement(cuts):
        number = segment_of(cuts)
        alike = number[apart:] == number[:-apart]
        pairs = np.where(alike, together, 1 - together).mean()
        return boundary[list(cuts)].sum() / (count - 1) + PAIRS * pairs

    best = max(map(agreement, ways(count, shortest)))
    found = agree_into(count, vectors, worth, shortest)
    assert tuple(found) in ways(count, shortest)
    assert agreement(found) == pytest.approx(best, abs=1e-9)


def test_where_one_way_stands_out_it_is_taken():
    vectors = np.repeat(np.eye(3, dtype=np.float32), [20, 30, 15], axis=0)
    assert agree_into(3, vectors, np.zeros(65), 2) == [20, 50]


def test_more_segments_than_fit_become_as_many_as_can_be():
    vectors, worth = some_units(0)
    assert agree_into(50, vectors, worth, 1) == list(range(1, UNITS))
    assert len(agree_into(50, vectors, worth, 3)) == 2
    assert agree_into(1, vectors, worth, 2) == []


def test_a_text_too_long_for_it_gets_the_best_boundaries(monkeypatch):
    vectors, worth = some_units(1)
    monkeypatch.setattr(consensus, "LONGEST", UNITS - 1)
    assert agree_into(4, vectors, worth, 2) == cut_into(4, vectors, worth, 2)
