"""What was added to a study is in the command line, the report, the figures and the viewer."""

import json
from html import escape

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope import figures
from headscope.cli import app
from headscope.effects.added import added_rows, told_of_heads
from headscope.effects.adding import Adding
from headscope.effects.registry import DEFINITIONS, VERBS
from headscope.errors import CannotDraw
from headscope.report.added.registry import SECTIONS
from headscope.report.study_page import study_page
from headscope.viewer.studied import packed_study


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def with_effects(tiny, made, corpus, tmp_path_factory):
    import shutil

    folder = tmp_path_factory.mktemp("with") / "study"
    shutil.copytree(made, folder)
    return tiny.effects(corpus, folder)


def test_the_command_adds_to_the_study_and_prints_what_it_added(study, corpus):
    said = run("effects", corpus, "--out", study.path, "--limit", 5, "--quiet")
    assert said.exit_code == 0, said.output
    assert "5 documents" in said.stdout
    rows = hs.open(study.path).effects.to_pylist()
    told = run("effects", corpus, "--out", study.path, "--limit", 5, "--json")
    assert json.loads(told.stdout) == {
        "effects": rows,
        "effect_findings": hs.open(study.path).effect_findings.to_pylist(),
        "effect_correlations": hs.open(study.path).effect_correlations.to_pylist(),
    }
    lines = run("effects", corpus, "--out", study.path, "--limit", 5, "--csv").stdout.splitlines()
    assert lines[0].startswith("level,layer,head,quantity,value")
    assert len(lines) == 1 + len(rows)


def test_progress_is_told_into_a_file_where_that_is_asked_for(study, corpus):
    arguments = ("entropy", corpus, "--out", study.path, "--limit", 2)
    assert run(*arguments).stderr == ""
    last = run(*arguments, "--progress").stderr.splitlines()[-1]
    assert last.startswith("100%, 2 documents, ")
    assert json.loads(run(*arguments, "--json-progress").stderr.splitlines()[-1])["done"] == 1


def test_ctrl_c_is_told_in_a_sentence(study, corpus, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Adding, "finish", interrupted)
    stopped = run("effects", corpus, "--out", study.path, "--quiet")
    assert stopped.exit_code == 130
    assert "nothing was added" in stopped.stderr
    assert not hs.open(study.path).manifest.added


def test_wrong_settings_are_explained(study, corpus):
    said = run("effects", corpus, "--out", study.path, "--loss", "grief")
    assert "loss is one of masked, causal, embedding" in str(said.exception)


def test_a_report_without_additions_says_nothing_of_them(study):
    page = study_page(study)
    for section in SECTIONS:
        assert f"<h2>{section.title}</h2>" not in page
        for name in section.figures:
            with pytest.raises(CannotDraw, match=f"headscope {section.verb} CORPUS --out"):
                figures.FIGURES[name](study)


def test_the_report_shows_every_addition_with_its_definitions(with_effects):
    page = study_page(with_effects)
    (section,) = [one for one in SECTIONS if one.verb == "effects"]
    assert f"<h2>{section.title}</h2>" in page
    how = with_effects.manifest.added["effects"]
    assert f"From {how.documents:,} documents, {how.tokens:,} tokens" in page
    for figure in section.figures.values():
        for quantity in figure.quantities:
            assert escape(DEFINITIONS[quantity].says, quote=False) in page


def test_the_card_of_a_head_says_what_was_added_first(with_effects):
    page = study_page(with_effects)
    told = told_of_heads(with_effects)
    assert len(told) == 12
    for (layer, head), rows in told.items():
        card = page.split(f'<div id="head-{layer}-{head}">')[1].split("</div>")[0]
        for row in rows:
            assert f"{row['quantity'].replace('_', ' ')}: {row['value']:.3g}" in card


def test_the_viewer_is_given_every_added_number_of_heads(with_effects):
    packed = {one["name"]: one for one in packed_study(with_effects)["measures"]}
    for verb, row in added_rows(with_effects):
        one = packed[row["quantity"]]
        at = (row["layer"] - 1) * 4 + row["head"] - 1
        if row["value"] is not None:
            assert one["value"][at] == pytest.approx(row["value"], rel=1e-3)
        assert (one["measure"], one["told"]) == (verb.name, row["quantity"] in verb.told)
        assert one["definition"] == DEFINITIONS[row["quantity"]].says
    first = {name for name, one in packed.items() if one["told"]}
    assert first == {"zero_effect"} < set(VERBS["effects"].told)
