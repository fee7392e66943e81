"""Figures and the report of a study: what they show is what the tables say, and text stays text."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import headscope as hs
from headscope import figures
from headscope.report.study_page import study_page
from headscope.sample import SAMPLE
from headscope.store import Study
from test_cli import run

HOSTILE = 'A </script><img src=x onerror=alert(1)> sea & "sea" <u>fog</u> [and] fog. ' * 8


@pytest.fixture(scope="module")
def study(specimen: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return specimen.study(SAMPLE, tmp_path_factory.mktemp("sample") / "study", cut="paragraph")


@pytest.fixture(scope="module")
def hostile(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("hostile")
    corpus = folder / "<i>corpus.txt"
    corpus.write_text("\n".join([HOSTILE, "", HOSTILE.upper(), "", "x"]))
    return tiny.study(corpus, folder / "study", cut="paragraph")


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_is_drawn_with_its_sample_named(
    study: Study, name: str, tmp_path: Path
) -> None:
    file = figures.save(figures.FIGURES[name](study), tmp_path / "figure.svg")
    words = " ".join(ET.parse(file).getroot().itertext())
    documents = study.manifest["corpus"]["documents"]
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
    shown = {(row["layer"], row["special"]): row["value"] for row in drawn}
    expected = study.sql(
        "select layer, special, value from range where level = 'layer' and mode = 'real' "
        "and quantity = 'mean_distance' and reading = 'raw' and rule = 'quantile(0.01)'"
    ).to_pylist()
    assert len(expected) == 24
    assert shown == {(row["layer"], row["special"]): row["value"] for row in expected}


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
    assert len(re.findall(r"<div id='head-\d+-\d+'>", page)) == 144
    assert page.count("<svg") == 10 - 1  # all but the chart of the findings, which are a table
    assert "headscope study sample.txt --out STUDY --document paragraph" in page


def test_every_section_of_the_report_has_its_verdict(study: Study) -> None:
    headings = re.findall(
        r"<h2>(\w+) ((?:<span class='verdict.*?</span> ?)*)</h2>", study_page(study)
    )
    assert len(headings) == 7
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
