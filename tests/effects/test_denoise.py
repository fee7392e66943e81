"""The verb `denoise`: the same measures on cleaned vectors, and what the model loses by them."""

import json
import shutil

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import headscope as hs
from headscope import figures
from headscope.cli import app
from headscope.corpus import Corpus
from headscope.effects.change import run
from headscope.effects.cleaned import CleanedModel
from headscope.effects.cleaning import common_mode, directions
from headscope.effects.loss import Loss
from headscope.pairs import reference
from headscope.report.study_page import study_page
from headscope.units import read_units

BEFORE = ("noise", "snr"), ("noise", "unrelated"), ("size", "contrast"), ("size", "effective_rank")


@pytest.fixture(scope="module")
def cleaned(tiny, made, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cleaned") / "study"
    shutil.copytree(made, folder)
    return tiny.denoise(corpus, folder, limit=0, windows=0)


def told(study, cleaning, quantity, level="model"):
    return [
        row
        for row in study.denoise.to_pylist()
        if (row["cleaning"], row["quantity"], row["level"]) == (cleaning, quantity, level)
    ]


@pytest.mark.parametrize(("measure", "quantity"), BEFORE)
def test_before_cleaning_numbers_are_those_of_the_study(cleaned, measure, quantity):
    (own,) = [
        row["value"]
        for row in cleaned.table(measure).to_pylist()
        if (row["level"], row["mode"], row["quantity"]) == ("model", "real", quantity)
    ]
    for cleaning in (
        "common mode",
        "position means",
        "first direction alone",
        "first 4 directions alone",
    ):
        (row,) = told(cleaned, cleaning, f"cleaned_{quantity}")
        assert row["before"] == pytest.approx(own, rel=1e-6)


def test_the_signal_to_noise_of_cleaned_vectors_is_that_of_their_matrices(cleaned, tiny, corpus):
    """Dense, from z that is cleaned by hand."""
    chosen = cleaned.manifest.parameters
    assert chosen.special == ("kept",)
    ratios = []
    for n, document in enumerate(Corpus(corpus, "paragraph")):
        for unit in read_units(n, document, tiny.tokenizer, tiny.shape.window, "en"):
            for layer in tiny.head_vectors(unit.tokens):
                for z in layer.double().numpy():
                    C = reference.similarity(z - z.mean(0))
                    pairs = reference.all_pairs(np.ones(len(z), bool))
                    kinds = reference._Kinds(unit.marks)
                    far = C[pairs & kinds.unrelated]
                    if len(far) and far.std() > 0:
                        near = C[pairs & ~kinds.unrelated]
                        ratios.append((near.mean() - far.mean()) / far.std())
    (row,) = told(cleaned, "common mode", "cleaned_snr")
    assert row["value"] == pytest.approx(np.mean(ratios), rel=1e-3)


def test_without_its_mean_a_text_has_no_common_mode_and_with_one_direction_one_rank(cleaned):
    (row,) = told(cleaned, "common mode", "cleaned_common_mode")
    assert row["value"] < 1e-4 < row["before"]
    assert row["chance"] > 0.1
    (row,) = told(cleaned, "first direction alone", "cleaned_effective_rank")
    assert row["value"] == pytest.approx(1, abs=1e-3)
    assert row["chance"] == pytest.approx(1, abs=1e-3)
    assert row["before"] > 1.1


def test_the_loss_is_that_of_the_model_with_cleaned_vectors_put_back(cleaned, tiny, corpus):
    losses = {"before": 0.0, "value": 0.0, "chance": 0.0}
    answers = 0.0
    loss = Loss(tiny)
    for n, document in enumerate(Corpus(corpus, "paragraph")):
        for unit in read_units(n, document, tiny.tokenizer, tiny.shape.window, "en"):
            asked = loss.ask([unit])
            answers += asked.counts[0]
            for name, cleaning in (
                ("before", None),
                ("value", directions(2)),
                ("chance", directions(2, random=True)),
            ):
                change = None if cleaning is None else cleaning.change([unit], "encoder")
                losses[name] += loss.sums(run(tiny, asked, change), asked)[0]
    (row,) = told(cleaned, "first 2 directions alone", "cleaned_loss")
    for name, value in losses.items():
        assert row[name] == pytest.approx(value / answers, rel=1e-4)
    assert row["change"] == pytest.approx(row["value"] - row["before"])
    assert row["beyond_random"] == pytest.approx(row["value"] - row["chance"])
    assert row["change_low"] <= row["change"] <= row["change_high"]


def test_the_model_itself_is_seen_cleaned_and_stays_as_it_is(tiny, corpus):
    (document, *_) = Corpus(corpus, "paragraph")
    (unit, *_) = read_units(0, document, tiny.tokenizer, tiny.shape.window, "en")
    seen, plain = [], tiny.head_vectors(unit.tokens)
    model = CleanedModel(tiny.loaded, tiny.silenced, common_mode())
    model.units = [unit]
    output = model.observe(unit.tokens, lambda outputs: seen.append(outputs.z[0]))
    own = tiny.observe(unit.tokens, lambda _: None)
    assert torch.equal(output.last_hidden_state, own.last_hidden_state)
    for one, other in zip(seen, plain, strict=True):
        assert torch.allclose(one, other - other.mean(1, keepdim=True), atol=1e-5)


def test_heads_have_their_snr_without_the_common_mode_in_the_viewer(cleaned):
    from headscope.viewer.studied import packed_study

    packed = {one["name"]: one for one in packed_study(cleaned)["measures"]}
    rows = cleaned.denoise_heads.to_pylist()
    assert [row["level"] for row in rows] == ["head"] * 12
    values = packed["snr_without_common_mode"]["value"]
    assert values == pytest.approx([row["value"] for row in rows], rel=1e-3)


def test_the_report_and_the_figures_show_it(cleaned, tmp_path):
    page = study_page(cleaned)
    assert "<h2>Noise taken away</h2>" in page
    assert "same sentence beyond distance" in page
    for name in ("denoise_loss", "denoise_snr"):
        assert figures.save(figures.FIGURES[name](cleaned), tmp_path / f"{name}.svg").exists()


def test_a_model_is_asked_for_its_embedding_where_that_is_wanted(study, corpus):
    def run_with(*options):
        arguments = ["denoise", corpus, "--out", study.path, "--limit", 2, "--quiet", *options]
        return CliRunner().invoke(app, [str(one) for one in arguments])

    said = run_with("--loss", "embedding")
    assert said.exit_code == 0, said.output
    assert "at random" in said.stdout
    added = hs.open(study.path)
    assert added.manifest.added["denoise"].parameters["loss"] == "embedding"
    for row in told(added, "first direction alone", "cleaned_loss"):
        assert row["before"] == pytest.approx(0, abs=1e-9)
        assert row["value"] > 0
    rows = json.loads(run_with("--json").stdout)
    assert set(rows) == {"denoise", "denoise_heads"}
