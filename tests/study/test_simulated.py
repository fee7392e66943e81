"""What is false is seldom said to hold, and what is true is found: on studies of known truth."""

from collections import Counter

import numpy as np
import pytest
from simulated import LAYERS, VIEW, by_layer, flat, rising, simulated, wandering

from headscope.study.bootstrap import interval
from headscope.study.claims import CLAIMS
from headscope.study.evidence import Evidence
from headscope.study.modes import modes_of
from headscope.study.told import FAILS, HOLDS, OPEN
from headscope.study.verdicts import examine, judge

NULLS = modes_of(("random", "shuffle", "identity"))
BY_NAME = {claim.name: claim for claim in CLAIMS}


def verdicts(totals, nulls=NULLS, claims=CLAIMS):
    real = Evidence(totals, "real", VIEW)
    others = {mode: Evidence(totals, mode, VIEW) for mode in nulls}
    tested = [examine(claim, real, others, {}) for claim in claims]
    return {t.claim.name: v for t, v in zip(tested, judge(tested), strict=True)}


TRUE = {
    "separators": {"separator": rising(1, 12)},
    "sentence_ends": {"sentence_end": rising(1, 12)},
    "centralisation": {"attended_columns": rising(3, 1)},
    "repetition_heads": {"same_word": flat(1) + 19 * (np.arange(72).reshape(12, 6) == 40)},
    "common_token_heads": {"word_share": flat(1) + 4 * (np.arange(72).reshape(12, 6) == 13)},
    "range": {"distance": rising(2, 1)},
    "same_sentence": {"same": rising(1, 3), "same_matched": rising(1, 3)},
    "same_sentence_beyond_distance": {"same": rising(1, 3), "same_matched": rising(1, 3)},
    "unique_anchors": {"unique": flat(2)},
}


def at_threshold(name):
    """Just as much as the threshold, which is not above it."""
    threshold = BY_NAME[name].threshold
    return {
        "separators": {"separator": ending(threshold)},
        "sentence_ends": {"sentence_end": ending(threshold)},
        "centralisation": {"attended_columns": beginning(threshold)},
        "repetition_heads": {"same_word": flat(threshold)},
        "common_token_heads": {"word_share": flat(threshold)},
        "range": {"distance": beginning(threshold)},
        "same_sentence": {"same": ending(threshold)},
        "same_sentence_beyond_distance": {"same_matched": ending(threshold)},
        "unique_anchors": {"unique": flat(1 + threshold / 0.3)},
    }[name]


def ending(last):
    """A rise whose last quarter has this mean."""
    return by_layer(np.concatenate([np.linspace(last / 2, last, LAYERS - 3), [last] * 3]))


def beginning(times):
    """A fall whose first quarter is so many times the last."""
    middle = np.linspace(times, 1, LAYERS - 4)[1:-1]
    return by_layer(np.concatenate([[times] * 3, middle, [1.0] * 3]))


def test_what_is_true_holds_and_nothing_else(random):
    for name, lifts in TRUE.items():
        found = verdicts(simulated(random, {"real": lifts} | {mode: {} for mode in NULLS}))
        assert found[name].word == HOLDS, (name, found[name])
        wrong = {n for n, v in found.items() if v.word == HOLDS} - {name}
        assert wrong <= {"same_sentence", "same_sentence_beyond_distance"}, name


def test_heads_that_repeat_punctuation_or_markup_are_no_repetition_heads(random):
    """Of the strongest head of the specimen four fifths of its repetition were that."""
    one_head = flat(1) + 39 * (np.arange(72).reshape(12, 6) == 40)
    for repeated in ("same_function_word", "same_punctuation", "same_unknown_or_markup"):
        modes = {"real": {repeated: one_head}} | {mode: {} for mode in NULLS}
        totals = simulated(random, modes)
        found = Evidence(totals, "real", VIEW).heads("repetition", repeated)[0]
        assert np.nanargmax(found) == 40
        assert verdicts(totals)["repetition_heads"].word == FAILS


def test_what_the_nulls_do_as_well_does_not_hold(random):
    for name, lifts in TRUE.items():
        for null in BY_NAME[name].nulls:
            modes = {mode: lifts if mode == null else {} for mode in (*NULLS, "permuted")}
            found = verdicts(simulated(random, {"real": lifts} | modes), (*NULLS, "permuted"))
            assert found[name].word != HOLDS, (name, null)


def test_without_a_null_that_was_run_nothing_holds(random):
    for name, lifts in TRUE.items():
        found = verdicts(simulated(random, {"real": lifts}), ())
        assert (found[name].word, found[name].reason) == (
            OPEN,
            "no null was run that it has to exceed",
        )


def test_where_all_pairs_are_alike_no_claim_about_pairs_holds(random):
    lifts = {name: one for lifts in TRUE.values() for name, one in lifts.items()}
    alike = lifts | {"contrast": flat(0.004)}
    found = verdicts(simulated(random, {"real": alike} | {mode: {} for mode in NULLS}))
    for claim in CLAIMS:
        assert (found[claim.name].word == FAILS) == claim.about_pairs
    # A null in which they are alike is undefined, shown, and stands in nobody's way.
    nulls = dict.fromkeys(NULLS, alike)
    real = Evidence(totals := simulated(random, {"real": lifts} | nulls), "real", VIEW)
    tested = examine(
        BY_NAME["unique_anchors"], real, {m: Evidence(totals, m, VIEW) for m in NULLS}, {}
    )
    assert {null.why_not for null in tested.nulls} == {"all pairs are alike (contrast below 0.05)"}
    assert verdicts(totals)["unique_anchors"].word == HOLDS


def test_one_group_or_a_few_say_nothing_of_another(random):
    for groups in (1, 3):
        for name, lifts in TRUE.items():
            modes = {"real": lifts} | {mode: {} for mode in NULLS}
            found = verdicts(simulated(random, modes, groups=groups, of_a_group=30))
            assert found[name].word == OPEN, name
            assert "interval" in found[name].reason


def test_no_sure_trend_is_undecided_and_the_wrong_one_does_not_hold(random):
    level = {"separator": flat(8)}
    found = verdicts(simulated(random, {"real": level} | {mode: {} for mode in NULLS}))
    assert found["separators"].word == OPEN
    falling = {"separator": rising(12, 5)}
    found = verdicts(simulated(random, {"real": falling} | {mode: {} for mode in NULLS}))
    assert (found["separators"].word, found["separators"].reason) == (
        FAILS,
        "falls over the layers",
    )


def holds(random, name, lifts_of, runs=200, grouped=False, beside=()):
    """How often a claim holds over simulated studies of 60 documents, judged alone and `beside`.

    `grouped`: every other study is of 20 groups of three documents that are alike.
    """
    alone, among, claim = Counter(), Counter(), BY_NAME[name]
    measures = (claim.measure, "size")
    for run in range(runs):
        modes = {"real": lifts_of(random)} | {mode: {} for mode in NULLS}
        groups, of_a_group = (20, 3) if grouped and run % 2 else (60, 1)
        totals = simulated(random, modes, groups, of_a_group, measures=measures)
        others = {mode: Evidence(totals, mode, VIEW) for mode in NULLS}
        tested = examine(claim, Evidence(totals, "real", VIEW), others, {})
        alone[judge([tested])[0].word] += 1
        among[judge([tested, *beside])[0].word] += 1
    return alone[HOLDS] / runs, among[HOLDS] / runs


def nothing_else(random, name):
    """The other claims, as a study examines them in which nothing is there."""
    totals = simulated(random, {"real": {}} | {mode: {} for mode in NULLS})
    real, others = Evidence(totals, "real", VIEW), {m: Evidence(totals, m, VIEW) for m in NULLS}
    return [examine(claim, real, others, {}) for claim in CLAIMS if claim.name != name]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
def test_a_statistic_at_its_threshold_seldom_holds(random, name):
    assert holds(random, name, lambda _: at_threshold(name), grouped=True)[0] <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", [claim.name for claim in CLAIMS if claim.curve is not None])
def test_a_curve_that_wanders_without_a_trend_seldom_holds(random, name):
    """High all over, so that threshold and nulls are passed, but only wandering over the layers."""

    def lifts(random):
        curve = by_layer(np.exp(0.5 * wandering(random)))
        return dict.fromkeys(TRUE[name], 4 * curve)

    alone, in_a_study = holds(random, name, lifts, beside=nothing_else(random, name))
    assert alone <= 0.05
    assert in_a_study <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_found_in_four_of_five_studies(random, name):
    assert holds(random, name, lambda _: TRUE[name], runs=50)[0] >= 0.8


def coverage(random, groups, together, runs):
    """How often 83 % intervals hold the truth, over simulated studies and their layers."""
    covered, truth = [], 30.0
    for _ in range(runs):
        totals = simulated(
            random,
            {"real": {}},
            groups=groups,
            of_a_group=5,
            measures=("range", "size"),
            together=together,
        )
        low, high = interval(Evidence(totals, "real", VIEW).layers("range", "mean_distance"), 0.83)
        covered.append((low <= truth) & (truth <= high))
    return np.mean(covered)


@pytest.mark.parametrize("groups", [20, 60])
def test_intervals_over_groups_cover_what_intervals_over_documents_do_not(random, groups):
    """83 % intervals for a new lot of groups of five alike documents: 1,800 of them."""
    assert 0.80 <= coverage(random, groups, True, 150) <= 0.86
    assert coverage(random, groups, False, 50) < 0.65
