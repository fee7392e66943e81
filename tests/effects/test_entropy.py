"""The verb `entropy`: what layers answer, in the study, the report and a pipe."""

import json

import numpy as np
import pytest
import transformers as t
from typer.testing import CliRunner

import headscope as hs
from families import SIZE
from headscope import figures
from headscope.cli import app
from headscope.effects.answers import answers
from headscope.effects.lens import Lens
from headscope.effects.loss import Loss
from headscope.errors import CannotObserve
from headscope.report.study_page import study_page
from headscope.study.bootstrap import document_weights
from headscope.units import read_units
from tiny import wordpiece


@pytest.fixture(scope="module")
def layered(specimen, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("entropy") / "study"
    specimen.study(corpus, folder, document="paragraph", nulls=(), readings=("raw",))
    return specimen.entropy(corpus, folder, limit=0)


def values(study, quantity):
    rows = [row for row in study.entropy.to_pylist() if row["quantity"] == quantity]
    assert [row["layer"] for row in rows] == [None, *range(1, 13)]
    assert [row["level"] for row in rows] == ["embeddings", *["layer"] * 12]
    return rows


def test_the_table_has_the_means_over_all_answers_with_intervals_over_documents(
    layered, specimen, corpus
):
    from headscope.corpus import Corpus

    loss, lens = Loss(specimen), Lens(specimen)
    lost, number, weights = [], [], []
    for n, document in enumerate(Corpus(corpus, "paragraph")):
        units = read_units(n, document, specimen.tokenizer, 512, "en")
        found = answers(loss, lens, loss.ask(units))
        lost.append(found.loss.sum(1))
        number.append(found.loss.shape[1])
        weights.append(document_weights(document.identity, 0))
    expected = np.sum(lost, 0) / np.sum(number)
    rows = values(layered, "answer_loss")
    assert [row["value"] for row in rows] == pytest.approx(expected, rel=1e-4)
    weights = np.stack(weights, 1)  # (replicates + 1, documents)
    with np.errstate(invalid="ignore"):
        replicates = (weights @ np.array(lost) / (weights @ np.array(number))[:, None])[1:]
    errors = np.nanstd(replicates, axis=0, ddof=1)
    assert [row["error"] for row in rows] == pytest.approx(errors, rel=1e-3)
    gains = [row["value"] for row in values(layered, "loss_gain")]
    assert gains[0] is None
    assert gains[1:] == pytest.approx(expected[:-1] - expected[1:], abs=1e-4)


def test_the_specimen_grows_surer_and_righter_with_depth(layered):
    for quantity, better in (("answer_loss", -1), ("answer_entropy", -1), ("accuracy", 1)):
        rows = values(layered, quantity)
        first, last = (better * row["value"] for row in (rows[0], rows[-1]))
        assert last > first
        assert better * rows[-1]["value"] > better * rows[-1]["chance"]


def test_types_are_told_with_their_accuracy_and_what_they_are_taken_for(layered):
    types = layered.token_types.to_pylist()
    asked = {row["rank"]: row["asked"] for row in types}
    assert [asked[rank] for rank in sorted(asked)] == sorted(asked.values(), reverse=True)
    for row in types:
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
    last = [row for row in types if row["layer"] == 12]
    apt = np.mean([row["accuracy"] for row in last])
    assert values(layered, "accuracy_per_type")[12]["value"] == pytest.approx(apt)
    for row in layered.confusions.to_pylist():
        assert row["type"] != row["answer"]
        (own,) = [one for one in last if one["type"] == row["type"]]
        assert row["share"] <= 1 - own["accuracy"] + 1e-9
        assert row["lift"] == pytest.approx(row["share"] / row["chance"])


def test_the_report_and_the_figures_show_it(layered, tmp_path):
    page = study_page(layered)
    assert "<h2>Entropy by layer</h2>" in page
    confused = any(row["count"] >= 3 for row in layered.confusions.to_pylist())
    assert ("What the last layer takes for what" in page) == confused
    for name in ("entropy", "accuracy"):
        assert figures.save(figures.FIGURES[name](layered), tmp_path / f"{name}.svg").exists()


def test_the_command_prints_every_layer(layered, corpus):
    def run(*options):
        arguments = ["entropy", corpus, "--out", layered.path, "--limit", 3, "--quiet", *options]
        return CliRunner().invoke(app, [str(one) for one in arguments])

    said = run()
    assert said.exit_code == 0, said.output
    assert "3 documents" in said.stdout
    assert "chance" in said.stdout
    told = json.loads(run("--json").stdout)
    assert set(told) == {"entropy", "token_types", "confusions"}
    assert told["entropy"] == hs.open(layered.path).entropy.to_pylist()


def test_a_loss_without_a_language_head_is_refused_and_nothing_is_added(tiny, study, corpus):
    with pytest.raises(CannotObserve, match="masked or causal, not embedding"):
        tiny.entropy(corpus, study.path, loss="embedding")
    assert not hs.open(study.path).manifest.added


def test_a_model_without_a_language_head_is_told_what_else_there_is(corpus, tmp_path):
    tokenizer = wordpiece()
    bare = t.BertModel(t.BertConfig(**SIZE | {"vocab_size": len(tokenizer)})).eval()
    scope = hs.load(bare, tokenizer, device="cpu")
    with pytest.raises(CannotObserve, match=r"no language head, so its layers .* no entropy"):
        scope.entropy(corpus, tmp_path / "study")
    assert not (tmp_path / "study").exists()
