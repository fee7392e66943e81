"""Figures and the report of a study: what they show is what the tables say, and text stays text."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope import figures
from headscope.measures.registry import DEFINITIONS
from headscope.report.added import registry as added
from headscope.report.study_page import study_page
from headscope.sample import SAMPLE
from headscope.study.folder import Study
from test_cli import run

HOSTILE = 'A </script><img src=x onerror=alert(1)> sea & "sea" <u>fog</u> [and] fog. ' * 8
OF_MEASURES = [name for name in figures.FIGURES if name not in added.FIGURES]


@pytest.fixture(scope="module")
def study(specimen: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return specimen.study(SAMPLE, tmp_path_factory.mktemp("sample") / "study", document="paragraph")


@pytest.fixture(scope="module")
def hostile(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("hostile")
    corpus = folder / "<i>corpus.txt"
    corpus.write_text("\n".join([HOSTILE, "", HOSTILE.upper(), "", "x"]))
    return tiny.study(corpus, folder / "study", document="paragraph")


@pytest.mark.parametrize("name", OF_MEASURES)
def test_every_figure_is_drawn_with_its_sample_named(
    study: Study, name: str, tmp_path: Path
) -> None:
    file = figures.save(figures.FIGURES[name](study), tmp_path / "figure.svg")
    words = " ".join(ET.parse(file).getroot().itertext())
    documents = study.manifest.corpus.documents
    assert f"{documents} documents" in words
    assert "95 % intervals" in words


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")],
)
def test_a_figure_is_saved_in_every_format(
    study: Study, kind: str, begins: bytes, tmp_path: Path
) -> None:
    file = figures.save(figures.focus(study), tmp_path / f"figure.{kind}")
    assert file.read_bytes().lstrip()[: len(begins)] == begins


def test_a_chart_shows_the_numbers_of_the_table(study: Study) -> None:
    (drawn,) = figures.range_by_layer(study).to_dict()["datasets"].values()
    shown = {(row["series"], row["layer"]): row["value"] for row in drawn}
    expected = study.sql(
        "select layer, reading, special, value from range where level = 'layer' and mode = 'real' "
        "and quantity = 'mean_distance' and rule = 'quantile(0.01)'"
    ).to_pylist()
    assert len(expected) == 48
    names = {
        ("raw", "left_out"): "raw",
        ("cosine", "left_out"): "cosine",
        ("raw", "kept"): "raw, special tokens kept",
    }
    assert shown == {
        (names[row["reading"], row["special"]], row["layer"]): row["value"]
        for row in expected
        if (row["reading"], row["special"]) in names
    }


@pytest.mark.parametrize("name", ["range", "sentence", "uniqueness", "noise", "snr"])
def test_raw_stands_beside_cosine_and_what_is_told_comes_first(study: Study, name: str) -> None:
    (drawn,) = figures.FIGURES[name](study).to_dict()["datasets"].values()
    series = list(dict.fromkeys(row["series"] for row in drawn))
    assert series[0] == "raw"
    assert "cosine" in series


def test_the_model_is_drawn_before_its_nulls_and_only_it_with_an_interval(study: Study) -> None:
    (drawn,) = figures.centralisation(study).to_dict()["datasets"].values()
    series = list(dict.fromkeys(row["series"] for row in drawn))
    weights = ["random weights", "permuted weights"]
    assert series == ["the model", *weights, "shuffled text", "no attention"]
    assert {row["series"] for row in drawn if row["low"] is not None} == {"the model"}


def test_repetition_is_drawn_of_content_words_as_the_claim_has_it(study: Study) -> None:
    (drawn,) = figures.repetition(study).to_dict()["datasets"].values()
    (claim,) = (
        row
        for row in study.findings.to_pylist()
        if row["claim"] == "repetition_heads" and row["told"] and row["mode"] == "real"
    )
    assert any(row["shown"] == pytest.approx(claim["value"]) for row in drawn if row["shown"])


def test_the_report_says_what_was_computed_on_and_leads_to_the_paper(study: Study) -> None:
    page = study_page(study)
    assert "on cpu, in float32<" in page
    assert '<a href="https://arxiv.org/abs/2512.21956">' in page
    half = Study(study.path)
    half.__dict__["manifest"] = replace(study.manifest, dtype="bfloat16")
    assert "Study in float32" in study_page(half)


def test_a_matrix_has_the_colours_of_the_viewer(specimen: hs.Scope) -> None:
    code = (Path(hs.__file__).parent / "viewer/static/colours.js").read_text(encoding="utf-8")
    mako = re.findall(r"#\w{6}", re.search(r"const MAKO = \[(.*?)\]", code)[1])
    light = re.findall(r'light: \["(#\w{6})"', code)[0]
    diverging = re.findall(r"#\w{6}", re.search(r"DIVERGING = \{\s+light: \[(.*?)\]", code)[1])
    assert [light, *mako[:0:-1]] == figures.SEQUENTIAL
    assert diverging == figures.DIVERGING
    reading = specimen.read("The keeper lit the lamp at dusk, and the ship passed.")
    reading.layers[2][1][0] *= 30  # [CLS]
    scale = figures.matrix(reading, 3, 2).to_dict()["encoding"]["color"]["scale"]
    plain = ~reading.tokens.special
    C = reading.similarity(3, 2)
    inner = C[plain][:, plain][np.triu_indices(plain.sum(), 1)]
    assert scale["domain"] == [np.sort(inner)[1], np.sort(inner)[-2]]
    assert scale["clamp"]
    assert scale["range"] == figures.SEQUENTIAL
    scale = figures.matrix(reading, 3, 2, "centred").to_dict()["encoding"]["color"]["scale"]
    assert scale["domain"][0] == -scale["domain"][1]


def test_a_matrix_holds_its_tokens(specimen: hs.Scope, tmp_path: Path) -> None:
    reading = specimen.read("The sea is <b>not</b> the sea, said the keeper.")
    file = figures.save(figures.matrix(reading, 3, 2, "cosine"), tmp_path / "matrix.svg")
    words = [text.strip() for text in ET.parse(file).getroot().itertext()]
    for piece in reading.tokens.pieces:
        assert words.count(piece) >= 2  # on both sides
    with pytest.raises(figures.CannotDraw, match="--tokens 0:80"):
        figures.matrix(specimen.read(hs.sample_text()), 1, 1)


def test_the_report_says_the_verdicts_first_and_every_head(study: Study) -> None:
    page = study_page(study)
    assert len(page.encode()) < 8_000_000
    assert page.index("<h2>Findings</h2>") < page.index("<h2>Separators")
    for row in study.table("findings").to_pylist():
        assert row["verdict"] in ("holds", "does not hold", "undecided")
        assert row["says"] in page
    assert len(re.findall(r'<div id="head-\d+-\d+">', page)) == 144
    assert page.count("<svg") == 11 - 1  # all but the chart of the findings, which are a table
    assert "headscope study sample.txt --out STUDY --document paragraph" in page


def test_every_figure_of_the_report_says_what_it_counts(study: Study) -> None:
    page = study_page(study)
    for quantity in (one for name in OF_MEASURES for one in figures.QUANTITIES.get(name, ())):
        assert escape(DEFINITIONS[quantity].says, quote=False) in page


def test_every_section_of_the_report_has_its_verdict(study: Study) -> None:
    headings = re.findall(
        r'<h2>(\w+) ((?:<span class="verdict.*?</span> ?)*)</h2>', study_page(study)
    )
    assert len(headings) == 6  # noise is measured and claimed nowhere
    assert all("verdict" in badges for _, badges in headings)


def test_what_a_corpus_spells_is_never_taken_for_markup(hostile: Study) -> None:
    page = study_page(hostile)
    assert "<img" not in page
    assert "<u>fog" not in page
    assert "</script" not in page
    assert "<i>corpus" not in page
    assert "&lt;i&gt;corpus.txt" in page
    assert "&lt;img" in page or "onerror" in page


def test_the_verbs_write_what_they_are_asked_for(study: Study, tmp_path: Path) -> None:
    page, figure = tmp_path / "report.html", tmp_path / "figure.svg"
    done = run("report", str(study.path), "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert page.read_text(encoding="utf-8") == study_page(study)
    assert run("figure", str(study.path), "snr", "-o", str(figure)).returncode == 0
    assert figure.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("report", "nowhere"), "There is no study in 'nowhere'"),
        (("figure", "nowhere", "upside"), "There is no figure 'upside'; there are: focus"),
        (("figure", "nowhere", "matrix"), "is no file"),
    ],
)
def test_mistakes_are_answered(words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert says in done.stderr.replace("\n", " ")
