"""Verdicts by the stated rule, and what the specimen, random weights and shuffled text get."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.specimen import FOLDER
from headscope.study.claims import CLAIMS
from headscope.study.modes import USUAL
from headscope.study.told import FAILS, HOLDS, OPEN
from headscope.study.trends import Trend, shape, spearman, trend
from headscope.study.verdicts import AgainstNull, Examined, judge

RISING = next(claim for claim in CLAIMS if claim.name == "separators")
PLAIN = next(claim for claim in CLAIMS if claim.name == "unique_anchors")
UP = Trend(0.9, 0.001, 0.8, 1.0)
BELOW = AgainstNull("random", 0.1, 0.2, 0.1, 0.3, 1e-6, needed=True)
NONE = AgainstNull("random", *[np.nan] * 5, needed=True, why_not="all pairs are alike (…)")
SURE = {"p": 1e-6, "nulls": (BELOW,)}


@pytest.mark.parametrize(
    ("claim", "numbers", "word", "reason"),
    [
        (PLAIN, {}, HOLDS, "above 0.1, above the nulls"),
        (PLAIN, {"nulls": (NONE,)}, HOLDS, "above 0.1"),
        (PLAIN, {"nulls": ()}, OPEN, "no null was run"),
        (PLAIN, {"nulls": (replace(BELOW, low=-0.3, high=-0.1),)}, FAILS, "less than random"),
        (PLAIN, {"nulls": (replace(BELOW, low=-0.1),)}, OPEN, "not surely more than random"),
        (PLAIN, {"nulls": (BELOW, replace(BELOW, low=-0.1, needed=False))}, HOLDS, "above"),
        (PLAIN, {"low": 0.05}, OPEN, "the interval holds the threshold"),
        (PLAIN, {"low": 0.01, "high": 0.05}, FAILS, "below the threshold of 0.1"),
        (PLAIN, {"low": np.nan, "high": np.nan}, OPEN, "too few documents"),
        (PLAIN, {"groups": 1.0}, OPEN, "one group has no interval"),
        (PLAIN, {"groups": 3.0}, OPEN, "so few groups"),
        (PLAIN, {"missing": "no pair is high under sigma(3.0)"}, OPEN, "no pair is high"),
        (PLAIN, {"alike": True}, FAILS, "all pairs are alike"),
        (PLAIN, {"p": 0.2}, OPEN, "not sure enough"),
        (RISING, {"trend": UP}, HOLDS, "with the trend"),
        (RISING, {"trend": UP, "layers": 4}, OPEN, "4 layers are too few"),
        (RISING, {"trend": Trend(0.2, 0.3, -0.1, 0.5)}, OPEN, "no sure rise"),
        (RISING, {"trend": Trend(-0.9, 0.999, -1, -0.8)}, FAILS, "falls over the layers"),
        (RISING, {"trend": Trend(0.6, 0.01, -0.1, 1)}, OPEN, "depends on the documents"),
    ],
)
def test_the_rule_of_verdicts(claim, numbers, word, reason):
    high = {"value": 3.0, "low": 2.5, "high": 3.5}
    (found,) = judge([Examined(claim, **high | SURE | numbers)])
    assert (found.word, reason in found.reason) == (word, True), found


def test_what_is_sure_alone_may_not_be_among_nine():
    sure, unsure = (Examined(PLAIN, 3.0, 2.5, 3.5, p, (BELOW,)) for p in (0.01, 0.9))
    assert judge([sure])[0].word == HOLDS
    among = judge([sure, *[unsure] * 8])
    assert {verdict.word for verdict in among} == {OPEN}
    assert among[0].p == pytest.approx(0.09)


def test_spearman_is_that_of_ranks():
    curves = np.array([[1.0, 2, 4, 8, 16], [5, 4, 3, 2, 1], [1, 1, 2, 2, 3], [2, 2, 2, 2, 2]])
    found = spearman(curves)
    assert found[:2] == pytest.approx([1, -1])
    ranks = np.array([0.5, 0.5, 2.5, 2.5, 4])
    assert found[2] == pytest.approx(np.corrcoef(ranks, np.arange(5))[0, 1])
    assert np.isnan(found[3])


@pytest.mark.parametrize("layers", [6, 12, 24])
@pytest.mark.parametrize("sticky", [0.0, 0.5])
def test_curves_that_wander_seldom_have_a_trend(random, layers, sticky):
    curves = random.normal(size=(600, layers))
    for layer in range(1, layers):
        curves[:, layer] *= np.sqrt(1 - sticky**2)
        curves[:, layer] += sticky * curves[:, layer - 1]
    found = [trend(curve[None], rising=True).p for curve in curves]
    assert np.mean(np.array(found) <= 0.05) <= 0.06
    assert trend(np.arange(12.0)[None], rising=True).p < 0.002
    assert trend(np.arange(12.0)[None], rising=False).p > 0.99


def bent(turn, noise, random):
    """200 replicates of a curve that falls up to a layer and then rises."""
    true = np.abs(np.arange(1, 13) - turn) / 4
    return true + noise * random.normal(size=(201, 12))


def test_the_turn_of_a_curve_is_located_with_an_interval(random):
    found = shape(bent(6, 0.02, random))
    assert (found.turn, found.low, found.high) == (6, 6, 6)
    assert found.words == "falls up to layer 6, then rises"
    unsure = shape(bent(6, 0.15, random))
    assert unsure.low < unsure.high
    assert unsure.low <= 6 <= unsure.high
    steady = shape(np.arange(12.0) + 0.1 * random.normal(size=(201, 12)))
    assert steady.words == "rises throughout"
    assert np.isnan(steady.turn)
    assert shape(random.normal(size=(201, 12))).words == "is level throughout"
    assert shape(bent(6, 0.1, random)[:, :4]).words == ""


TEXTS = [paragraph for paragraph in hs.sample_text().split("\n") if len(paragraph) > 60]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The specimen on the sample text, with random weights and shuffled text beside it."""
    scope = hs.load(device="cpu")
    return scope.study(TEXTS, tmp_path_factory.mktemp("sample"))


def verdicts(study, mode):
    rows = study.findings.to_pylist()
    return {
        (row["claim"], row["reading"], row["special"]): row["verdict"]
        for row in rows
        if row["mode"] == mode
    }


@pytest.mark.parametrize("mode", ["random", "random-2", "random-3"])
def test_random_weights_hold_nothing(sample, mode):
    found = verdicts(sample, mode)
    pairs = [claim for claim in CLAIMS if claim.about_pairs]
    assert len(found) == len(CLAIMS) - len(pairs) + 4 * len(pairs)
    assert HOLDS not in found.values()
    read = ("raw", "cosine")
    alike = {found[claim.name, reading, "left_out"] for claim in pairs for reading in read}
    assert alike == {FAILS}, "cosine stretches what rounding leaves, so the gate is on raw contrast"


def test_shuffled_text_has_no_sentences_to_prefer(sample):
    found = verdicts(sample, "shuffle")
    assert found["same_sentence_beyond_distance", "raw", "left_out"] != HOLDS


def test_nulls_are_run_by_default_and_stand_beside_every_finding(sample):
    assert sample.manifest.parameters.nulls == USUAL
    assert sample.manifest.nulls.windows == len(TEXTS)
    for row in sample.findings.to_pylist():
        assert row["statistic"]
        assert row["reason"]
        modes = [null["null"] for null in row["nulls"]]
        if row["mode"] != "real":
            assert modes == []
            continue
        assert modes == ["random", "random-2", "random-3", "permuted", "shuffle", "identity"]
        for null in row["nulls"]:
            assert (null["value"] is None) == (null["why_not"] is not None)
        if row["verdict"] == HOLDS:
            assert row["low"] > row["threshold"]
            assert row["p"] <= 0.05
            needed = [null for null in row["nulls"] if null["needed"] and null["value"] is not None]
            assert all(null["low"] > 0 for null in needed)


def test_a_null_that_cannot_be_run_is_told_with_its_reason(tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
    )
    made = hs.load(transformers.MPNetModel(config), tokenizer).study(TEXTS[:3], tmp_path)
    assert made.manifest.nulls.cannot == {"identity": "the values of mpnet are out of sight"}
    told = [row["nulls"] for row in made.findings.to_pylist() if row["mode"] == "real"]
    assert told
    for nulls in told:
        (identity,) = [null for null in nulls if null["null"] == "identity"]
        assert identity["why_not"] == "not run: the values of mpnet are out of sight"


def test_one_document_has_no_interval_and_so_nothing_holds(tmp_path):
    made = hs.load(device="cpu").study([hs.sample_text()], tmp_path, nulls=())
    rows = made.findings.to_pylist()
    assert {row["verdict"] for row in rows} <= {OPEN}
    assert all("one group has no interval" in row["reason"] for row in rows if row["value"])
