"""Weights that belong to documents, and intervals that cover what they should."""

import numpy as np
import pytest

from headscope.study.bootstrap import document_weights, interval, standard_error, weights


def test_weights_are_poisson_and_belong_to_the_document():
    drawn = weights([f"document {n}".encode() for n in range(2000)], seed=0)[:, 1:]
    assert drawn.mean() == pytest.approx(1, abs=0.01)
    assert drawn.var() == pytest.approx(1, abs=0.02)
    assert (drawn == 0).mean() == pytest.approx(np.exp(-1), abs=0.005)
    again = document_weights(b"document 7", seed=0)
    assert again[0] == 1
    np.testing.assert_array_equal(again[1:], drawn[7])
    assert (document_weights(b"document 7", seed=1) != again).any()


def ratios(random: np.random.Generator, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares as measures have them: some of the pairs of each document, documents unlike."""
    pairs = random.integers(20, 400, documents)
    own = random.beta(2, 6, documents)
    return random.binomial(pairs, own).astype(float), pairs.astype(float)


@pytest.mark.parametrize("documents", [40, 150])
def test_a_95_percent_interval_covers_95_percent(random, documents):
    found, pairs = ratios(random, 200_000)
    truth = found.sum() / pairs.sum()
    covered, runs = 0, 600
    for run in range(runs):
        found, pairs = ratios(random, documents)
        names = [f"{run} {n}".encode() for n in range(documents)]
        counted = weights(names, seed=0)
        low, high = interval((counted.T @ found) / (counted.T @ pairs))
        covered += bool(low <= truth <= high)
    assert 0.92 <= covered / runs <= 0.98


def test_the_interval_of_a_share_stays_between_0_and_1(random):
    found, pairs = np.array([0.0, 0.0, 9.0]), np.array([10.0, 10.0, 10.0])
    counted = weights([b"a", b"b", b"c"], seed=0)
    with np.errstate(invalid="ignore"):
        low, high = interval((counted.T @ found) / (counted.T @ pairs))
    assert 0 <= low < 0.3 < high <= 1


def test_replicates_without_a_value_are_left_out_and_too_many_leave_no_interval():
    values = np.array([1.0, 0.9, np.nan, 1.1, 1.0])
    assert standard_error(values) == pytest.approx(0.1)
    assert np.isnan(interval(np.array([1.0, 0.9, np.nan, np.nan, 1.0]))[0])
