"""Cutting texts into topics: what holds for any text, and what the heads must see."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.errors import CannotRead, HeadscopeError
from headscope.segment.changes import gains
from headscope.segment.features import unit_vectors
from headscope.segment.passages import passage_spans
from headscope.segment.segmenter import Segmenter, default_segmenter, kernel_vectors
from headscope.segment.sides import SCALES, sides_alike

CATS = (
    "The cat sleeps on the warm mat. A small cat drinks milk. The cat and the kitten play. "
    "Every cat likes to hunt mice. "
)
SHIPS = (
    "The ship left the harbour at dawn. Its captain set the sails. Waves broke over the deck. "
    "The sailors tied the ropes of the ship."
)
MIXED = st.lists(
    st.one_of(st.sampled_from([*CATS.split(". "), *SHIPS.split(". "), ". ", "\n\n"]), st.text()),
    max_size=8,
).map("".join)


@given(text=MIXED, n=st.none() | st.integers(1, 6))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_joined_segments_are_the_text(tiny, text, n):
    segments = tiny.segment(text, n=n)
    assert "".join(segments) == text
    assert [text[a:b] for a, b in segments.offsets] == list(segments)
    assert all(segment for segment in segments)


@given(text=MIXED)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_white_space_at_the_end_moves_no_boundary(tiny, text):
    before, after = tiny.segment(text), tiny.segment(text + "\n")
    if text.strip():
        assert [s.start for s in before] == [s.start for s in after]
        assert [s.score for s in before] == [s.score for s in after]


def test_the_same_text_is_always_cut_alike(tiny):
    first, second = tiny.segment(CATS + SHIPS, n=3), tiny.segment(CATS + SHIPS, n=3)
    assert len(first) == 3
    assert first.as_dict() == second.as_dict()


def test_an_empty_text_has_no_segments_and_white_space_has_one(tiny):
    assert list(tiny.segment("")) == []
    assert list(tiny.segment(" \n\t ")) == [" \n\t "]
    assert list(tiny.segment("One sentence only.")) == ["One sentence only."]


def test_a_text_of_characters_the_tokenizer_drops_is_one_segment(tiny):
    text = "\x01\x02. \x03\x04. \x05"
    assert "".join(tiny.segment(text)) == text


def test_a_segment_knows_its_place_and_the_worth_of_its_boundary(tiny):
    segments = tiny.segment(CATS + SHIPS, n=2)
    first, second = segments
    assert (first.start, first.score) == (0, 0.0)
    assert second.start == first.end
    assert second.score == pytest.approx(segments.explain().scores[segments.explain().cuts[0]])
    assert second.score > 0


def test_granularity_and_n_say_how_many(tiny):
    text = (CATS + SHIPS + " ") * 3
    coarse, fine = (len(tiny.segment(text, granularity=g)) for g in (0.2, 8.0))
    assert coarse < fine
    assert [len(tiny.segment(text, n=n)) for n in (1, 4, 9)] == [1, 4, 9]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"level": "page"}, "level"), ({"n": 0}, "at least 1"), ({"granularity": 0}, "granularity")],
)
def test_what_cannot_be_asked_is_said(tiny, wrong, said):
    with pytest.raises(ValueError, match=said):
        tiny.segment(CATS, **wrong)


def test_a_text_that_is_no_text_is_an_error(tiny):
    with pytest.raises(CannotRead, match="str"):
        tiny.segment(b"bytes")
    with pytest.raises(CannotRead, match="surrogate"):
        tiny.segment("half \ud800 pair")


def test_every_unit_is_read_on_its_own(tiny):
    units = [CATS[a:b] for a, b in passage_spans(CATS)]
    together = np.concatenate(list(unit_vectors(tiny, units)))
    assert together.shape == (4, 12, 8)
    for unit, vectors in zip(units, together, strict=True):
        reading = tiny.read(unit)
        own = ~reading.tokens.special
        alone = reading.head_vectors(2, 3)[own].mean(axis=0)
        np.testing.assert_allclose(vectors[4 + 2], alone, atol=1e-5)


def test_a_unit_longer_than_the_window_is_read_whole(tiny):
    long = "cat ship " * 100
    (vectors,) = unit_vectors(tiny, [long])
    (first,) = unit_vectors(tiny, ["cat ship " * 10])
    assert np.isfinite(vectors).all()
    assert np.abs(vectors).sum() > 0
    assert not np.allclose(vectors, first)


def test_the_kernel_is_the_weighted_sum_of_centred_similarities(tiny):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 3, 5)).astype(np.float32)
    weights = np.array([0.2, 0.5, 0.3])
    flat = kernel_vectors(vectors, weights)
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=2, keepdims=True)
    expected = np.einsum("h,uhd,vhd->uv", weights, unit, unit)
    np.testing.assert_allclose(flat @ flat.T, expected, atol=1e-5)


def test_an_explanation_shows_kernel_scores_and_heads(tiny):
    segments = tiny.segment(CATS + SHIPS, n=3)
    why = segments.explain()
    assert len(why.spans) == 8
    assert why.kernel.shape == (8, 8)
    np.testing.assert_allclose(why.similarity, gains(why.vectors, list(why.cuts)))
    np.testing.assert_allclose(why.scores, why.similarity + why.start)
    assert sum(share for _, _, share in why.heads) == pytest.approx(1)
    assert {(layer, head) for layer, head, _ in why.heads} == {
        (layer, head) for layer in (2, 3) for head in (1, 2, 3, 4)
    }
    assert "of 7 boundaries" in repr(why)


def test_the_shares_of_heads_come_from_the_kernel_and_from_what_was_learned(specimen):
    segments = specimen.segment(hs.sample_text(), n=4)
    why, segmenter = segments.explain(), default_segmenter(specimen)
    units = [hs.sample_text()[a:b] for a, b in why.spans]
    evidence = segmenter.evidence(segmenter.read(specimen, units))
    np.testing.assert_allclose(why.start, evidence.worth, atol=1e-6)
    shares = {(layer, head): share for layer, head, share in why.heads}
    assert sum(shares.values()) == pytest.approx(1)
    assert any(layer < 11 for layer, _ in shares)
    added = evidence.by_head[list(why.cuts)].sum(axis=0)
    against = int(np.argmin(added[: 10 * 12]))
    assert added[against] < 0
    assert (against // 12 + 1, against % 12 + 1) not in shares


def test_both_sides_of_a_place_are_compared_near_and_far():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 3, 5)).astype(np.float32)
    found = sides_alike(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)

    def cosine(left, right):
        return left @ right / np.linalg.norm(left) / np.linalg.norm(right)

    for place, head in ((1, 0), (17, 1), (39, 2)):
        expected = [
            cosine(
                unit[max(0, place - s) : place, head].sum(0), unit[place : place + s, head].sum(0)
            )
            for s in SCALES
        ]
        expected.append(cosine(unit[:place, head].sum(0), unit[place, head]))
        expected.append(cosine(unit[:3, head].sum(0), unit[place, head]))
        np.testing.assert_allclose(found[place, head], expected, atol=1e-5)
    assert not found[0].any()


def test_a_study_chooses_late_heads_that_keep_to_a_sentence(tiny, tmp_path):
    study = tiny.study([CATS + SHIPS] * 3, tmp_path / "study")
    chosen = Segmenter.from_study(study)
    table = study.sql(
        "select layer, head, "
        "rank() over (order by same_sentence desc) + rank() over (order by common_mode) as score "
        "from heads where layer > 1 order by score"
    ).to_pydict()
    kept = {(layer, head) for layer, head, _ in chosen.kernel}
    assert len(kept) == 8
    scores = dict(zip(zip(table["layer"], table["head"], strict=True), table["score"], strict=True))
    assert max(scores[head] for head in kept) <= min(
        (score for head, score in scores.items() if head not in kept), default=99
    )
    assert "".join(tiny.segment(CATS + SHIPS, segmenter=chosen)) == CATS + SHIPS
    fitted = tiny.fit_segmenter([[CATS, SHIPS], [SHIPS, CATS]], study=study)
    assert fitted.kernel == chosen.kernel


def test_text_without_sentences_is_cut_all_the_same():
    words = " ".join(f"word{i}" for i in range(200))
    spans = passage_spans(words)
    assert len(spans) == 8
    assert " ".join(words[a:b] for a, b in spans) == words


def test_a_long_sentence_is_one_unit():
    sentence = " ".join(["word"] * 120) + "."
    assert passage_spans(sentence + " " + sentence) == [(0, 600), (601, 1201)]


def test_a_fitted_segmenter_survives_its_file(tiny, tmp_path):
    examples = [[CATS, SHIPS], [SHIPS, CATS, SHIPS], [[*CATS.split(". ")], [*SHIPS.split(". ")]]]
    fitted = tiny.fit_segmenter(examples)
    assert fitted.made_from == "3 texts, 4 boundaries"
    again = Segmenter.load(fitted.save(tmp_path / "segmenter.json"))
    assert again.as_dict() == fitted.as_dict()
    text = CATS + SHIPS
    before = tiny.segment(text, segmenter=fitted, n=2)
    assert tiny.segment(text, segmenter=tmp_path / "segmenter.json", n=2).offsets == before.offsets


def test_fitting_learns_to_put_the_boundary_where_the_examples_have_it(tiny):
    examples = [[CATS, SHIPS], [SHIPS, CATS], [CATS, SHIPS, CATS], [SHIPS, CATS, SHIPS]]
    found = tiny.segment(CATS + SHIPS, segmenter=tiny.fit_segmenter(examples), n=2)
    assert list(found) == [CATS, SHIPS]


def test_too_few_examples_are_an_error(tiny):
    with pytest.raises(CannotRead, match="too few"):
        tiny.fit_segmenter([[CATS]])


def test_a_segmenter_of_another_model_is_refused(tiny):
    other = default_segmenter(tiny)
    wrong = Segmenter(other.model, (9, 4, 8), other.kernel, other.penalty)
    with pytest.raises(CannotRead, match="9 × 4 × 8"):
        tiny.segment(CATS, segmenter=wrong)


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({"format": "other"})])
def test_a_file_that_is_no_segmenter_is_an_error(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(HeadscopeError, match="no segmenter"):
        Segmenter.load(path)


def test_the_specimen_comes_with_a_segmenter(specimen):
    assert default_segmenter(specimen).made_from != "no labelled texts"
    segments = specimen.segment(hs.sample_text(), n=3)
    assert len(segments) == 3
    assert "".join(segments) == hs.sample_text()
