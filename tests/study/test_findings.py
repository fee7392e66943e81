"""Verdicts by the stated rule, and what the specimen, random weights and shuffled text get."""

import numpy as np
import pytest

import headscope as hs
from headscope.store import CannotStudy
from headscope.study.cards import RULES, card
from headscope.study.compare import compare
from headscope.study.findings import CLAIMS, FAILS, HOLDS, OPEN, Trend, judge, spearman, trend

RISING = next(claim for claim in CLAIMS if claim.name == "separators")
PLAIN = next(claim for claim in CLAIMS if claim.name == "repetition_heads")
UP = Trend(0.9, 0.001, 0.8, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "claim", "moved", "layers", "beyond", "word"),
    [
        (0.3, 0.4, PLAIN, None, 12, None, HOLDS),
        (0.3, 0.4, PLAIN, None, 12, True, HOLDS),
        (0.3, 0.4, PLAIN, None, 12, False, FAILS),
        (0.1, 0.4, PLAIN, None, 12, None, OPEN),
        (0.1, 0.15, PLAIN, None, 12, None, FAILS),
        (np.nan, np.nan, PLAIN, None, 12, None, OPEN),
        (3, 4, RISING, UP, 12, None, HOLDS),
        (3, 4, RISING, UP, 4, None, OPEN),
        (3, 4, RISING, Trend(0.2, 0.5, -0.1, 0.5), 12, None, FAILS),
        (3, 4, RISING, Trend(-0.9, 0.001, -1, -0.8), 12, None, FAILS),
        (3, 4, RISING, Trend(0.6, 0.03, -0.1, 1), 12, None, OPEN),
    ],
)
def test_the_rule_of_verdicts(low, high, claim, moved, layers, beyond, word):
    assert judge(low, high, claim, moved, layers, beyond).word == word


def test_spearman_is_that_of_ranks():
    curves = np.array([[1.0, 2, 4, 8, 16], [5, 4, 3, 2, 1], [1, 1, 2, 2, 3], [2, 2, 2, 2, 2]])
    found = spearman(curves)
    assert found[:2] == pytest.approx([1, -1])
    ranks = np.array([0.5, 0.5, 2.5, 2.5, 4])
    assert found[2] == pytest.approx(np.corrcoef(ranks, np.arange(5))[0, 1])
    assert np.isnan(found[3])


def test_the_permutation_p_value_is_uniform_without_a_trend(random):
    p = [trend(random.normal(size=(1, 12))).p for _ in range(200)]
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= 0.1
    assert trend(np.arange(12.0)[None]).p < 0.001


TEXTS = [paragraph for paragraph in hs.sample_text().split("\n") if len(paragraph) > 60]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The specimen on the sample text, with random weights and shuffled text beside it."""
    scope = hs.load(device="cpu")
    return scope.study(TEXTS, tmp_path_factory.mktemp("sample"), nulls=("random", "shuffle"))


def verdicts(study, mode):
    rows = study.findings.to_pylist()
    return {(row["claim"], row["special"]): row["verdict"] for row in rows if row["mode"] == mode}


def test_random_weights_hold_nothing(sample):
    found = verdicts(sample, "random")
    assert len(found) == 2 + 2 * (len(CLAIMS) - 2)
    assert set(found.values()) == {FAILS}


def test_shuffled_text_has_no_sentences_to_prefer(sample):
    found = verdicts(sample, "shuffle")
    assert found["same_sentence_beyond_distance", "left_out"] != HOLDS


def test_the_specimen_sends_attention_to_separators_and_repeats(sample):
    found = verdicts(sample, "real")
    assert found["separators", None] == HOLDS
    assert found["repetition_heads", "left_out"] == HOLDS


def test_every_finding_has_its_statistic_its_threshold_and_a_reason(sample):
    for row in sample.findings.to_pylist():
        assert row["statistic"]
        assert row["reason"]
        assert row["threshold"] is not None
        if row["verdict"] == HOLDS:
            assert row["low"] > row["threshold"]


def test_every_head_has_one_card(sample):
    assert len(sample.heads) == 144
    labels = {label.split(":")[0] for label in sample.heads.column("label").to_pylist()}
    assert labels <= {rule.label for rule in RULES}
    assert len(labels) > 3
    for strength in sample.heads.column("strength").to_pylist():
        assert 0 <= strength <= 1


NUMBERS = """
    separator first_token previous_token next_token own_token punctuation punctuation_chance
    contrast same_word same_word_low same_word_lift anchor anchor_lift same_sentence
    same_sentence_matched_lift same_sentence_matched_lift_low mean_distance mean_distance_lift
    entropy_lift
"""
NOTHING = dict.fromkeys(NUMBERS.split(), np.nan)


@pytest.mark.parametrize(
    ("numbers", "label", "words"),
    [
        ({"separator": 0.7, "same_word_low": 0.9, "same_word_lift": 9}, "separator sink", "70%"),
        ({"previous_token": 0.6}, "previous token", "the token before"),
        ({"contrast": 0.01, "anchor": 0.9, "anchor_lift": 9}, "broad", "alike"),
        (
            {"same_word": 0.4, "same_word_low": 0.3, "same_word_lift": 12},
            "repetition",
            "40% of its high pairs repeat a word (12.0 × chance)",
        ),
        ({"anchor": 0.3, "anchor_lift": 4}, "anchor: ‘king’", "30% of the ends"),
        (
            {
                "same_sentence_matched_lift_low": 1.3,
                "same_sentence_matched_lift": 1.5,
                "same_sentence": 0.6,
            },
            "sentence",
            "1.50 × what their distance explains",
        ),
        ({"mean_distance": 4, "mean_distance_lift": 0.1}, "short range", "4 tokens apart"),
        ({"entropy_lift": 0.9}, "broad", "90%"),
        ({}, "mixed", "no single number"),
    ],
)
def test_the_first_rule_that_fits_gives_the_label(numbers, label, words):
    found = card(NOTHING | numbers, "king")
    assert found.label == label
    assert words in found.evidence


def test_a_study_does_not_differ_from_itself(sample):
    found = compare(sample, sample)
    assert len(found) > 144 * 30
    assert not any(found.column("differs").to_pylist())
    assert set(found.column("difference").to_pylist()) == {0.0}


def test_a_silenced_head_is_found_by_comparing(sample, tmp_path):
    scope = hs.load(device="cpu").ablate([(1, head) for head in range(1, 13)])
    other = scope.study(TEXTS, tmp_path)
    rows = compare(sample, other).slice(0, 200).to_pylist()
    assert all(row["differs"] for row in rows)
    assert all(row["low"] <= row["difference"] <= row["high"] for row in rows)
    assert {row["layer"] for row in rows} - {1}, "later layers read what the first no longer writes"


def test_documents_that_both_studies_read_are_compared_with_themselves(sample, tmp_path):
    scope = hs.load(device="cpu").ablate([(6, head) for head in range(1, 13)])
    other = scope.study(TEXTS, tmp_path)
    rows = compare(sample, other).to_pylist()
    before = [r for r in rows if r["layer"] < 6 and not r["quantity"].endswith("in_model")]
    assert before
    assert all(row["low"] == row["high"] == 0 for row in before), "nothing changed there"
    assert any(row["differs"] for row in rows if row["layer"] > 6)


def test_models_of_other_shapes_are_not_compared_head_by_head(sample, tiny, tmp_path):
    other = tiny.study(TEXTS[:2], tmp_path, replicates=3)
    with pytest.raises(CannotStudy, match="12 × 12 and 3 × 4"):
        compare(sample, other)
