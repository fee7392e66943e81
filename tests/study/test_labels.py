"""A head has every label that fits, each with its strength against chance and nulls."""

from contextlib import nullcontext

import numpy as np
import pyarrow.compute as pc
import pytest
from texts import TEXTS

import headscope as hs
from headscope.study.labels import NOTHING as MIXED
from headscope.study.labels import RULES, labels_of

CLASSES = (
    "same_content_word",
    "same_function_word",
    "same_punctuation",
    "same_unknown_or_markup",
)
PARTS = ("", "_low", "_lift", "_lift_low", "_chance", "_null")
NUMBERS = """
    separator separator_chance separator_null first_token first_token_chance first_token_null
    previous_token previous_token_chance previous_token_null next_token next_token_chance
    next_token_null own_token own_token_chance own_token_null
    punctuation punctuation_chance punctuation_null contrast unresolved
    anchor anchor_lift word_share word_share_chance word_share_null
    word_share_lift word_share_lift_low
    same_sentence same_sentence_matched_lift same_sentence_matched_lift_low
    same_sentence_matched_chance mean_distance mean_distance_lift entropy_lift
"""
REPEATED = [f"{name}{part}" for name in CLASSES for part in PARTS]
NOTHING = dict.fromkeys([*NUMBERS.split(), *REPEATED], np.nan)
VALUES = {"": 0.4, "_low": 0.3, "_lift": 12, "_lift_low": 9, "_chance": 0.03}
REPEATS = {f"same_content_word{part}": value for part, value in VALUES.items()}
COMMAS = {f"same_punctuation{part}": value for part, value in VALUES.items()}
ANCHOR = {"anchor": 0.3, "anchor_lift": 4, "word_share": 0.3, "word_share_chance": 0.15}
ANCHOR |= {"word_share_lift": 2.0, "word_share_lift_low": 1.8}
SENTENCE = {
    "same_sentence_matched_lift_low": 1.3,
    "same_sentence_matched_lift": 1.5,
    "same_sentence_matched_chance": 0.4,
    "same_sentence": 0.6,
}


def names(**numbers: float) -> list[str]:
    return [label.name for label in labels_of(NOTHING | numbers, "king")]


@pytest.mark.parametrize(
    ("numbers", "label", "words"),
    [
        ({"separator": 0.7, "separator_chance": 0.1}, "separator sink", "70%"),
        ({"previous_token": 0.6, "previous_token_chance": 0.1}, "previous token", "token before"),
        ({"contrast": 0.01}, "alike", "contrast 0.010"),
        (REPEATS, "repetition", "40% of its high pairs are content words repeated (12.0 × chance)"),
        (COMMAS, "repeated punctuation", "40% of its high pairs are punctuation repeated"),
        (ANCHOR, "anchor: ‘king’", "2.0 × what permuted tokens give"),
        (SENTENCE, "sentence", "1.50 × what their distance explains"),
        ({"mean_distance": 4, "mean_distance_lift": 0.1}, "short range", "4 tokens apart"),
        ({"entropy_lift": 0.9}, "broad", "90%"),
        ({}, "mixed", "no single number"),
    ],
)
def test_a_label_fits_by_its_rule_and_says_why(numbers, label, words):
    (found,) = labels_of(NOTHING | numbers, "king")
    assert found.name == label
    assert words in found.evidence


def test_a_head_has_every_label_that_fits_the_strongest_first():
    found = labels_of(
        NOTHING | REPEATS | SENTENCE | {"separator": 0.9, "separator_chance": 0.1}, "king"
    )
    assert [label.name for label in found] == ["separator sink", "repetition", "sentence"]
    strengths = [label.strength for label in found]
    assert strengths == pytest.approx([0.8 / 0.9, 0.37 / 0.97, 0.2 / 0.6], abs=1e-4)


def test_strength_is_measured_from_the_null_where_that_gives_more_than_chance():
    (found,) = labels_of(NOTHING | REPEATS | {"same_content_word_null": 0.2}, "king")
    assert found.strength == pytest.approx((0.4 - 0.2) / 0.8)


def test_what_a_null_does_as_well_is_no_label():
    assert names(**REPEATS | {"same_content_word_null": 0.65}) == ["mixed"]
    assert names(separator=0.6, separator_chance=0.1, separator_null=0.5) == ["mixed"]


def test_an_anchor_that_any_pairs_would_have_is_no_label():
    assert names(**ANCHOR | {"word_share_lift_low": 1.0}) == ["mixed"]


def test_a_head_whose_pairs_are_all_alike_has_no_label_of_pairs():
    assert names(**REPEATS | SENTENCE | {"contrast": 0.01}) == ["alike"]
    assert names(**REPEATS | {"unresolved": 0.16}) == ["unresolved"]
    both = names(**REPEATS | {"contrast": 0.01, "previous_token": 0.9})
    assert sorted(both) == ["alike", "previous token"]


def test_every_head_of_a_study_has_labels_in_lists_that_sql_can_ask(tiny, tmp_path):
    made = tiny.study(TEXTS, tmp_path, replicates=20)
    rows = made.heads.to_pylist()
    known = {rule.name for rule in RULES} | {MIXED.name}
    assert len(rows) == 12
    for row in rows:
        assert row["labels"]
        assert {name.split(":")[0] for name in row["labels"]} <= known
        assert len(row["labels"]) == len(row["strengths"]) == len(row["evidence"])
        assert row["strengths"] == sorted(row["strengths"], reverse=True)
        assert all(0 <= strength <= 1 for strength in row["strengths"])
    kind = rows[0]["labels"][0]
    asked = made.sql(f"select layer, head from heads where list_contains(labels, '{kind}')")
    assert len(asked) == sum(kind in row["labels"] for row in rows)


def test_where_rounding_decides_which_pairs_are_high_a_head_has_no_label_of_pairs(tmp_path):
    """As in half precision: bfloat16 has eight bits."""
    for dtype in ("float32", "bfloat16"):
        scope = hs.load(device="cpu", dtype=dtype)
        told = pytest.warns(UserWarning, match="Study in float32")
        with told if dtype == "bfloat16" else nullcontext():
            made = scope.study(
                TEXTS, tmp_path / dtype, nulls=(), special=("left_out",), replicates=20
            )
        rows = made.selection.filter(pc.field("level") == "head").to_pylist()
        unresolved = {
            (row["layer"], row["head"])
            for row in rows
            if (row["quantity"], row["reading"]) == ("unresolved", "raw") and row["value"] > 0.05
        }
        assert len(unresolved) > 130 if dtype == "bfloat16" else not unresolved
        for row in made.heads.to_pylist():
            rounded = (row["layer"], row["head"]) in unresolved
            assert ("unresolved" in row["labels"]) == rounded
            told = {name.split(":")[0] for name in row["labels"]}
            assert not (rounded and told & {"repetition", "anchor", "sentence", "short range"})
