"""The reference is the specification, so it is checked by hand and against plain loops."""

import numpy as np
import pytest
from agreement import some_tokens

from headscope.pairs import nearest, peak, plain_tokens, quantile, reference, sigma
from headscope.pairs.distances import DISTANCE_BINS, UPPER_DISTANCES, distance_bin, into_bins

EVERYONE = np.ones(4, bool)


def test_similarity_is_the_scalar_product_the_cosine_or_the_cosine_about_the_mean():
    z = np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0]])
    assert reference.similarity(z)[0, 1] == 24
    assert reference.similarity(z, "cosine")[0, 1] == pytest.approx(24 / 25)
    assert reference.similarity(z, "cosine")[0, 2] == 0  # no direction, similar to nothing
    a, b = z[0] - z.mean(0), z[1] - z.mean(0)
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert reference.similarity(z, "centred")[0, 1] == pytest.approx(cosine)


def test_centring_leaves_equal_vectors_similar_to_nothing():
    z = np.full((5, 3), 0.1)
    assert not reference.similarity(z, "centred").any()


def test_centring_uses_the_mean_of_the_tokens_that_take_part():
    z = np.array([[100.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    kept = np.array([False, True, True])
    assert reference.similarity(z, "centred", kept)[1, 2] == pytest.approx(-1)


def high(values, rule):
    """The high pairs of a matrix of four tokens, given by the six values above the diagonal."""
    C = np.zeros((4, 4))
    C[np.triu_indices(4, 1)] = values
    C += C.T
    return [
        (int(i), int(j))
        for i, j in zip(*np.nonzero(reference.high_pairs(C, rule, EVERYONE)), strict=True)
    ]


def test_quantile_takes_the_top_share_of_the_pairs_and_at_least_one():
    assert high([6, 5, 4, 3, 2, 1], quantile(0.34)) == [(0, 1), (0, 2), (0, 3)]
    assert high([6, 5, 4, 3, 2, 1], quantile(0.01)) == [(0, 1)]


def test_pairs_tied_with_the_threshold_are_all_high():
    assert high([5, 5, 5, 1, 1, 1], quantile(0.01)) == [(0, 1), (0, 2), (0, 3)]
    assert len(high([2, 2, 2, 2, 2, 2], quantile(0.01))) == 6
    assert len(high([2, 2, 2, 2, 2, 2], sigma(3.0))) == 6


def test_peak_and_sigma_compare_with_the_largest_and_with_the_spread():
    assert high([10, 3, 2.9, 0, -5, 1], peak(0.3)) == [(0, 1), (0, 2)]
    assert high([10, 0, 0, 0, 0, 0], sigma(2.0)) == [(0, 1)]


def test_nearest_lets_every_token_take_part():
    assert high([9, 1, 1, 2, 8, 3], nearest(1)) == [(0, 1), (1, 3), (2, 3)]


def test_every_count_is_what_two_plain_loops_count():
    rng = np.random.default_rng(0)
    tokens = some_tokens(rng, 80)
    C = reference.similarity(rng.normal(size=(80, 4)))
    found = reference.head_statistics(C, tokens, [quantile(0.1)], special="left_out").high[0]
    reach, counts = (
        found.threshold[0, 0],
        dict.fromkeys(("all", "sentence", "token", "word", "far"), 0),
    )
    for i in range(80):
        for j in range(i + 1, 80):
            if tokens.special[i] or tokens.special[j] or C[i, j] < reach:
                continue
            sentence = tokens.sentences[i] == tokens.sentences[j] != -1
            one_word = tokens.words[i] == tokens.words[j] != -1
            word = one_word and tokens.occurrences[i] != tokens.occurrences[j]
            counts["all"] += 1
            counts["sentence"] += sentence
            counts["token"] += tokens.ids[i] == tokens.ids[j]
            counts["word"] += word
            counts["far"] += not sentence and not one_word and j - i > 32
    assert counts["all"] == found.count == quantile(0.1).number(78 * 77 // 2)
    assert counts["sentence"] == found.same_sentence
    assert counts["token"] == found.same_token
    assert counts["word"] == found.same_word
    assert counts["far"] == found.unrelated
    assert found.special == 0
    assert found.taking_part.sum() == 2 * found.count
    assert found.by_distance.sum() == found.count


def test_the_expected_share_of_a_sentence_keeps_the_distances():
    tokens = plain_tokens(np.arange(6), sentences=[0, 0, 0, 1, 1, 1])
    C = np.zeros((6, 6))
    C[0, 1] = C[2, 3] = 1  # two pairs of neighbours, of which 4 in 5 share a sentence
    found = reference.head_statistics(C, tokens, [quantile(0.1)]).high[0]
    assert found.same_sentence == 1
    assert found.same_sentence_expected[0, 0] == pytest.approx(2 * 4 / 5)


def test_every_distance_up_to_64_has_its_bin_and_128_ends_one():
    assert [int(distance_bin(d)) for d in (1, 2, 64, 65, 76, 77)] == [0, 1, 63, 64, 64, 65]
    assert 128 in UPPER_DISTANCES
    values = np.arange(300)
    assert into_bins(values).sum() == values.sum()
    assert into_bins(values).shape == (DISTANCE_BINS,)
    for size in (1, 2, 64, 65, 66, 128, 129):
        counts = np.bincount(distance_bin(np.arange(1, size)), minlength=DISTANCE_BINS)
        assert np.array_equal(into_bins(np.append(0, np.ones(size - 1, int))), counts)
