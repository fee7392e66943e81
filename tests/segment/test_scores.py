"""The scores, by hand and against segeval where it is installed."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.segment.scores import (
    boundary_f1,
    boundary_similarity,
    pk,
    score,
    window_diff,
    window_size,
)


@st.composite
def two_segmentations(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    units = draw(st.integers(6, 40))

    def lengths() -> tuple[int, ...]:
        cuts = draw(st.sets(st.integers(1, units - 1), max_size=8))
        return tuple(b - a for a, b in pairwise([0, *sorted(cuts), units]))

    return lengths(), lengths()


def test_a_perfect_segmentation_has_no_error_and_full_agreement():
    assert score((4, 4, 8), (4, 4, 8)).as_dict() == {
        "pk": 0,
        "window_diff": 0,
        "boundary_f1": 1,
        "boundary_similarity": 1,
    }


def test_scores_of_a_case_counted_by_hand():
    # Units 0-7, k = 2: windows (0,2) … (5,7). The reference cuts before 4, the other before 3.
    # A cut lies inside (2,4), (3,5) there and (1,3), (2,4) here: two of six windows differ.
    found, reference = (3, 5), (4, 4)
    assert window_size(reference) == 2
    assert pk(found, reference) == pytest.approx(2 / 6)
    assert window_diff(found, reference) == pytest.approx(2 / 6)
    assert boundary_f1(found, reference) == 0
    assert boundary_similarity(found, reference) == 0.5  # one near miss


def test_two_boundaries_in_a_window_are_one_to_pk_and_two_to_window_diff():
    found, reference = (5, 1, 6), (6, 6)
    assert pk(found, reference) < window_diff(found, reference)


def test_predicting_no_boundary_scores_nothing_on_boundaries():
    assert boundary_f1((12,), (4, 4, 4)) == 0
    assert boundary_similarity((12,), (4, 4, 4)) == 0
    assert pk((12,), (4, 4, 4)) == pytest.approx(4 / 10)


def test_a_text_shorter_than_the_window_has_no_window_to_be_wrong_in():
    assert pk((1,), (1,)) == window_diff((1,), (1,)) == 0


@pytest.mark.parametrize(("found", "reference"), [((3, 3), (3, 4)), ((0, 6), (3, 3)), ((), (2,))])
def test_lengths_that_cannot_be_compared_are_an_error(found, reference):
    with pytest.raises(ValueError, match="segmentation"):
        pk(found, reference)


@given(two_segmentations())
@settings(max_examples=300, deadline=None)
def test_agreement_with_segeval(pair):
    segeval = pytest.importorskip("segeval")
    found, reference = pair
    assert window_size(reference) == segeval.compute_window_size(reference)
    assert pk(found, reference) == pytest.approx(float(segeval.pk(found, reference)))
    expected = float(segeval.window_diff(found, reference))
    assert window_diff(found, reference) == pytest.approx(expected)
    if len(found) > 1 or len(reference) > 1:
        expected = float(segeval.boundary_similarity(found, reference))
        assert boundary_similarity(found, reference) == pytest.approx(expected)
