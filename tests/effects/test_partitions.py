"""Adjusted mutual information held against all permutations, and chances that keep distances."""

from itertools import permutations

import numpy as np
import pytest

from headscope.effects.potts.partitions import (
    agreement,
    agreements,
    as_blocks,
    expected_information,
    shifted,
)


def information(one: np.ndarray, other: np.ndarray) -> float:
    """Mutual information in nats, by its definition."""
    found, size = 0.0, len(one)
    for a in set(one.tolist()):
        for b in set(other.tolist()):
            both = np.mean((one == a) & (other == b))
            if both:
                found += both * np.log(both / (np.mean(one == a) * np.mean(other == b)))
    assert size
    return found


CUTS = [
    ([0, 0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2, 2]),
    ([0, 1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1]),
    ([0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1, 1]),
]


@pytest.mark.parametrize(("one", "other"), CUTS)
def test_the_expectation_is_the_mean_over_all_permutations(
    one: list[int], other: list[int]
) -> None:
    ours, theirs = np.array(one), np.array(other)
    every = [information(ours[list(order)], theirs) for order in permutations(range(7))]
    expected = expected_information(np.bincount(ours), np.bincount(theirs))
    assert expected == pytest.approx(np.mean(every))
    entropy = (information(ours, ours) + information(theirs, theirs)) / 2
    wanted = (information(ours, theirs) - expected) / (entropy - expected)
    assert agreement(ours, theirs) == pytest.approx(wanted)
    moved = np.stack([ours[list(order)] for order in permutations(range(7))])
    assert agreements(moved, theirs).mean() == pytest.approx(0, abs=1e-12)


def test_the_same_cuts_agree_wholly_and_none_says_nothing() -> None:
    cut = np.array([0, 0, 1, 1, 1, 2])
    assert agreement(cut, cut + 5) == pytest.approx(1)
    assert agreement(np.zeros(6, int), cut) == pytest.approx(0)
    assert np.isnan(agreement(np.zeros(6, int), np.zeros(6, int)))
    assert agreement(np.arange(6), np.arange(6)) == 1


def test_it_is_what_scikit_learn_calls_so() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    for _ in range(20):
        one, other = random.integers(5, size=(2, 60))
        wanted = metrics.adjusted_mutual_info_score(one, other)
        assert agreement(one, other) == pytest.approx(wanted)


def test_moved_along_the_text_sentences_of_one_length_agree_as_chance_says() -> None:
    """Blocks of five in a text of sentences of five: every fifth shift is the text itself."""
    sentences = np.repeat(np.arange(4), 5)
    every = [agreement(np.roll(sentences, places), sentences) for places in range(1, 20)]
    assert shifted(sentences, sentences) == pytest.approx(np.mean(every))
    assert sum(one > 0.999 for one in every) == 3


def test_unbroken_blocks_have_the_sizes_of_the_communities_and_lie_together() -> None:
    sentences = np.repeat(np.arange(6), 5)
    scattered = np.random.default_rng(0).permutation(sentences)
    found = as_blocks(scattered, sentences, np.random.default_rng(1))
    assert found == pytest.approx(1)  # six blocks of five are these sentences, in any order
    uneven = np.array([0] * 20 + [1] * 7 + [2] * 3)
    assert 0.2 < as_blocks(uneven, sentences, np.random.default_rng(1)) < 0.9
    assert agreement(scattered, sentences) < 0.2
