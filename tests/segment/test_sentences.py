"""Cutting texts into sentences with the specimen, with and without punctuation."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.errors import CannotRead
from headscope.segment.gaps import SURFACE, gaps, head_features, surface
from headscope.segment.sentences import SentenceModel, is_punctuated, sentence_model

TEXT = "The lamp is gone. Dr. Smith saw it on Monday! Did he tell you? No, he did not."
WORDS = st.lists(
    st.one_of(st.sampled_from(["The lamp", "is gone.", "Did he", "?", "\n\n", " "]), st.text()),
    max_size=6,
).map("".join)


@given(text=WORDS, n=st.none() | st.integers(1, 4))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_joined_sentences_are_the_text_and_a_newline_moves_nothing(specimen, text, n):
    found = specimen.segment(text, level="sentence", n=n)
    assert "".join(found) == text
    after = specimen.segment(text + "\n", level="sentence", n=n)
    if text.strip():
        assert [s.start for s in after] == [s.start for s in found]


def test_plain_sentences_are_found_and_an_abbreviation_is_no_end(specimen):
    found = specimen.segment(TEXT, level="sentence")
    assert [sentence.strip() for sentence in found] == [
        "The lamp is gone.",
        "Dr. Smith saw it on Monday!",
        "Did he tell you?",
        "No, he did not.",
    ]
    assert all(sentence.score > 0 for sentence in found[1:])


def test_as_many_sentences_as_asked_for(specimen):
    assert [len(specimen.segment(TEXT, level="sentence", n=n)) for n in (1, 2, 3, 9)] == [
        1,
        2,
        3,
        9,
    ]


def test_granularity_moves_the_odds(specimen):
    coarse, fine = (
        len(specimen.segment(TEXT, level="sentence", granularity=g)) for g in (1e-6, 1e6)
    )
    assert coarse < 4 < fine


def test_text_without_punctuation_uses_weights_of_its_own():
    assert is_punctuated(TEXT)
    assert not is_punctuated("the lamp is gone doctor smith saw it on monday did he tell you")


def test_a_gap_is_before_every_word_but_the_first():
    text = "  One two\nthree"
    assert [text[g:].split()[0] for g in gaps(text)] == ["two", "three"]
    assert gaps("你好。再见。") == [3]
    assert gaps("") == []


def test_kinds_of_gap_differ_by_what_is_around():
    text = "It ended. Then Dr. Who came, he said.\n\nNew"
    kinds = {text[g:].split()[0]: surface(text, g) for g in gaps(text)}
    assert len({kinds[word] for word in ("Then", "Who", "came,", "he", "New")}) == 5
    assert max(kinds.values()) < SURFACE


def test_windows_of_a_long_text_see_every_gap_once(specimen):
    text = (TEXT + " ") * 16
    numbers = np.concatenate([owned for owned, _ in head_features(specimen, text)])
    assert sorted(numbers) == list(range(len(gaps(text))))


def test_weights_survive_their_file(specimen):
    found = sentence_model(specimen)
    again = SentenceModel.from_dict(found.as_dict())
    odds = found.odds(specimen, TEXT).total
    np.testing.assert_allclose(again.odds(specimen, TEXT).total, odds, atol=1e-3)
    assert (odds > 0).sum() == 3


def test_the_odds_of_a_gap_are_the_sum_of_what_heads_and_text_say(specimen):
    model = sentence_model(specimen)
    odds = model.odds(specimen, TEXT)
    text_says = [model.punctuated.surface[surface(TEXT, gap)] for gap in gaps(TEXT)]
    np.testing.assert_allclose(odds.heads.sum(axis=1) + text_says, odds.total, atol=0.05)


def test_an_explanation_names_the_heads_behind_the_sentences(specimen):
    why = specimen.segment(TEXT, level="sentence").explain()
    np.testing.assert_allclose(why.similarity + why.start, why.scores)
    assert sum(share for _, _, share in why.heads) == pytest.approx(1)
    assert all(1 <= layer <= 12 and 1 <= head <= 12 for layer, head, _ in why.heads)
    assert np.ptp(why.similarity) > 0


def test_progress_is_told_for_every_gap_once(specimen):
    told = []
    sentence_model(specimen).odds(specimen, (TEXT + " ") * 16, told.append)
    assert len(told) > 1
    assert sum(told) == len(gaps((TEXT + " ") * 16))


def test_another_model_is_told_that_it_has_no_weights(tiny):
    with pytest.raises(CannotRead, match="specimen"):
        tiny.segment(TEXT, level="sentence")


def test_the_sample_is_cut_at_its_full_stops(specimen):
    found = specimen.segment(hs.sample_text(), level="sentence")
    ends = [sentence.rstrip()[-1] for sentence in found]
    assert len(found) > 5
    assert np.mean([end in ".!?”\"'" for end in ends]) > 0.8
