"""The verb `agreement`: its tables, its map and its clusters, wherever they are shown."""

import json
import re

import numpy as np
import pytest
import torch
import transformers as t
from typer.testing import CliRunner

import headscope as hs
from families import SIZE
from headscope import figures
from headscope.cli import app
from headscope.corpus import Corpus
from headscope.effects.agreement import VERB
from headscope.effects.alike import hsic
from headscope.effects.head_map import clusters
from headscope.errors import CannotStudy
from headscope.report.study_page import study_page
from headscope.study.told import told_view
from headscope.units import read_units
from tiny import wordpiece


@pytest.fixture(scope="module")
def compared(tiny, made, corpus, tmp_path_factory):
    import shutil

    folder = tmp_path_factory.mktemp("compared") / "study"
    shutil.copytree(made, folder)
    return tiny.agreement(corpus, folder, limit=0, windows=0)


def texts(tiny, corpus, window):
    for n, document in enumerate(Corpus(corpus, "paragraph")):
        yield from read_units(n, document, tiny.tokenizer, window, "en")


def test_the_agreement_of_two_heads_is_that_of_their_sums_over_texts(compared, tiny, corpus):
    chosen = compared.manifest.parameters
    summed = np.zeros((12, 12))
    for unit in texts(tiny, corpus, tiny.shape.window):
        kept = unit.marks.kept(told_view(chosen).special)
        if kept.sum() >= 4:
            z = [layer[:, kept] for layer in tiny.head_vectors(unit.tokens)]
            summed += kept.sum() * hsic(z)
    expected = summed / np.sqrt(np.outer(np.diag(summed), np.diag(summed)))
    rows = compared.head_pairs.to_pylist()
    assert len(rows) == 12 * 11 / 2
    for row in rows:
        one = (row["first_layer"] - 1) * 4 + row["first_head"] - 1
        other = (row["second_layer"] - 1) * 4 + row["second_head"] - 1
        assert one < other
        assert row["agreement"] == pytest.approx(expected[one, other], abs=1e-5)
        assert row["agreement_low"] <= row["agreement"] <= row["agreement_high"]
        assert 0 <= row["overlap_chance"] < 0.1
        assert 0 <= row["overlap"] <= 1
        assert 0 < row["attention_distance"] < 1
    for row in compared.agreement.to_pylist():
        at = (row["layer"] - 1) * 4 + row["head"] - 1
        others = np.delete(expected[at], at)
        same = [other for other in range(12) if other // 4 == at // 4 and other != at]
        value = {
            "agreement_with_model": others.mean(),
            "agreement_with_layer": expected[at, same].mean(),
            "agreement_with_closest": others.max(),
        }
        assert row["value"] == pytest.approx(value[row["quantity"]], abs=1e-5)
        assert row["chance"] == 0
    places = compared.head_map.to_pylist()
    assert [row["cluster"] for row in places] == clusters(expected).tolist()
    for at, row in enumerate(places):
        closest = (row["closest_layer"] - 1) * 4 + row["closest_head"] - 1
        assert closest == np.where(np.arange(12) == at, -1, expected[at]).argmax()


def test_the_report_the_figures_and_the_cards_show_it(compared, tmp_path):
    page = study_page(compared)
    assert "<h2>Heads that do the same</h2>" in page
    assert "clusters of heads that agree by ½ or more" in page
    assert page.count("agreement with closest:") >= 12
    chart = page.split("Heads that do the same</h2>")[1].split("<figcaption>")[0]
    links = re.findall(r'<a href="#(head-\d-\d)"><(path|text) ', chart)
    heads = [f"head-{layer}-{head}" for layer in (1, 2, 3) for head in (1, 2, 3, 4)]
    assert sorted(links) == sorted((head, mark) for head in heads for mark in ("path", "text"))
    assert all(page.count(f'id="{head}"') == 1 for head in heads)
    for name in ("head_map", "layers_agree"):
        assert figures.save(figures.FIGURES[name](compared), tmp_path / f"{name}.svg").exists()


def test_the_command_prints_the_heads_that_agree_most(study, corpus, tiny_folder):
    def run(*options):
        arguments = ["agreement", corpus, "--out", study.path, "--limit", 3, "--quiet", *options]
        return CliRunner().invoke(app, [str(one) for one in arguments])

    said = run()
    assert said.exit_code == 0, said.output
    assert "3 documents" in said.stdout
    told = json.loads(run("--json").stdout)
    assert set(told) == {"head_pairs", "agreement", "head_map"}
    assert told["head_pairs"] == hs.open(study.path).head_pairs.to_pylist()
    beside = json.loads(run("--json", "--beside", tiny_folder).stdout)
    assert beside["heads_across"] == hs.open(study.path).heads_across.to_pylist()
    assert len(beside["heads_across"]) == 12 * 12
    assert hs.open(study.path).manifest.added[VERB.name].parameters["replicates"] == "200"


def test_texts_of_two_words_are_too_short(tiny, tmp_path):
    with pytest.raises(CannotStudy, match="too short to compare heads on"):
        tiny.agreement(["Yes", "A cat"], tmp_path / "study", limit=0)


def test_where_attention_is_out_of_sight_the_rest_is_told(tmp_path, corpus):
    tokenizer = wordpiece()
    config = t.MPNetConfig(**SIZE | {"vocab_size": len(tokenizer)})
    torch.manual_seed(0)
    scope = hs.load(t.MPNetForMaskedLM(config).eval(), tokenizer, device="cpu")
    assert scope.shape.seam == "projection"
    made = scope.agreement(corpus, tmp_path / "study", limit=2)
    for row in made.head_pairs.to_pylist():
        assert row["attention_distance"] is None
        assert row["agreement"] is not None
