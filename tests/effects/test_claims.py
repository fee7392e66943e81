"""Claims about what heads are worth: found where they were put, and nowhere else."""

import numpy as np
import pytest

from headscope.effects.claims import CLAIMS, Facts, _examined, findings_of
from headscope.effects.correlations import Column, columns_of, correlation_table, effect_of
from headscope.study.findings import COLUMNS
from headscope.study.told import HOLDS, told_claims, told_view
from headscope.study.verdicts import judge

LAYERS, HEADS, REPLICATES = 6, 8, 201
BY_NAME = {claim.name: claim for claim in CLAIMS}


def replicated(own, spread, generator):
    """Numbers of heads with replicates about them."""
    noise = generator.normal(size=(REPLICATES, *own.shape)) * spread
    noise[0] = 0
    return own + noise


def facts(strength, seed=0):
    """Effects that go down with noise as strongly as asked, and with depth in any case."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(LAYERS, HEADS))
    depth = np.arange(LAYERS)[:, None] * 10.0
    effect = depth - strength * noise + generator.normal(size=noise.shape) * 0.5
    labels = np.empty((LAYERS, HEADS), dtype=object)
    for place in np.ndindex(LAYERS, HEADS):
        labels[place] = ["repetition"] if effect[place] == effect[place[0]].max() else ["mixed"]
    own = {
        ("noise", "unrelated"): replicated(noise + depth, 0.05, generator),
        ("noise", "snr"): replicated(generator.normal(size=noise.shape), 0.05, generator),
        ("size", "contrast"): np.ones((REPLICATES, LAYERS, HEADS)),
    }
    return Facts(replicated(effect, 0.05, generator), own, labels)


def verdicts(given):
    tested = [_examined(claim, given, 100.0) for claim in CLAIMS]
    return dict(zip(BY_NAME, judge(tested), strict=True)), dict(zip(BY_NAME, tested, strict=True))


def test_what_is_there_within_layers_holds_though_depth_goes_the_other_way():
    found, tested = verdicts(facts(2.0))
    assert found["noisy_heads"].word == HOLDS
    assert tested["noisy_heads"].value > 0.5
    assert found["repetition_heads_matter"].word == HOLDS
    assert tested["repetition_heads_matter"].value == 1
    assert found["clear_heads"].word != HOLDS
    assert found["anchor_heads_matter"].reason == "no head is like this"


def test_what_is_not_there_holds_in_no_more_than_a_few_of_many_tries():
    held = sum(verdicts(facts(0.0, seed))[0]["noisy_heads"].word == HOLDS for seed in range(20))
    assert held <= 1


def test_heads_whose_pairs_are_all_alike_take_no_part():
    given = facts(2.0)
    given.columns["size", "contrast"][:, :3] = 0.01
    assert np.isnan(given.of("noise", "unrelated")[:, :3]).all()
    assert np.isfinite(given.of("noise", "unrelated")[:, 3:]).all()


def test_every_quantity_is_held_against_the_effect(tiny, study, corpus):
    made = tiny.effects(corpus, study.path, limit=0, windows=0)
    effect = effect_of(made, "zero_effect")
    columns = {(one.quantity, one.way): one for one in columns_of(made)}
    norm = columns["norm", ("raw", "kept", None)]
    assert norm.values.shape == effect.shape == (201, 3, 4)
    rows = [row for row in made.effect_correlations.to_pylist() if row["quantity"] == "norm"]
    from scipy.stats import spearmanr

    expected = spearmanr(norm.values[0].ravel(), effect[0].ravel())[0]
    assert rows[0]["rho"] == pytest.approx(expected, abs=1e-6)
    assert rows[0]["heads"] == 12
    (depth,) = (row for row in made.effect_correlations.to_pylist() if row["measure"] == "layer")
    assert depth["rho"] is not None
    assert depth["within"] is None
    assert made.effect_findings.column_names == list(COLUMNS)
    view = told_view(made.manifest.parameters)
    claims = told_claims(made.effect_findings.to_pylist(), view)
    assert {claim.row["claim"] for claim in claims} == set(BY_NAME)


def test_correlations_are_taken_replicate_by_replicate():
    generator = np.random.default_rng(0)
    both = generator.normal(size=(201, 3, 4))
    table = correlation_table([Column("m", "q", ("raw", "kept", "r"), both)], both)
    row = table.to_pylist()[1]
    assert (row["rho"], row["low"], row["high"], row["within"]) == (1, 1, 1, 1)


def test_claims_about_pairs_name_their_view(tiny, study, corpus):
    made = tiny.effects(corpus, study.path, limit=3)
    effect = effect_of(made, "zero_effect")
    rows = findings_of(made, list(columns_of(made)), effect, 3.0).to_pylist()
    by_name = {row["claim"]: row for row in rows}
    assert len(by_name) == len(rows) == len(CLAIMS)
    assert all(row["told"] for row in rows)
    assert by_name["separator_heads_matter_less"]["reading"] is None
    assert by_name["noisy_heads"]["reading"] == "raw"
    assert by_name["noisy_heads"]["reason"].startswith("so few groups have no interval")
