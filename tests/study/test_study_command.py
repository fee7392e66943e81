"""`headscope study` and `headscope compare`, as a person types them."""

import json

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.study.run import _Run

LINES = [line for line in hs.sample_text().split("\n") if len(line) > 60][:3]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus of three good lines and a broken one, and a study of it."""
    place = tmp_path_factory.mktemp("command")
    lines = "\n".join(LINES).encode()
    (place / "corpus.txt").write_bytes(lines + b"\nbad \xff byte\n")
    return place


@pytest.fixture(scope="module")
def made(folder):
    options = ("--document", "line", "--special", "left_out", "--json-progress")
    return run("study", folder / "corpus.txt", "--out", folder / "study", *options)


def test_a_study_prints_its_findings(made, folder):
    assert made.exit_code == 0, made.output
    assert "3 documents" in made.stdout
    assert "1 skipped" in made.stdout
    for word in ("separators", "centralises", "holds", "ρ"):
        assert word in made.stdout
    assert hs.open(folder / "study").manifest["corpus"]["name"] == "corpus.txt"


def test_progress_as_json_tells_documents_speed_and_failures(made):
    said = [json.loads(line) for line in made.stderr.splitlines() if line.startswith("{")]
    assert {"skipped": "corpus.txt", "line": 4, "reason": "not UTF-8: byte 0xff"} in said
    assert said[-1]["documents"] == 3
    assert {"tokens", "tokens_per_second", "seconds", "seconds_left"} <= set(said[-1])


def test_ctrl_c_says_how_to_go_on(folder, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Run, "_add", interrupted)
        stopped = run("study", folder / "corpus.txt", "--out", tmp_path / "s", "--quiet")
    assert stopped.exit_code == 130
    assert "The same command goes on" in stopped.stderr


def test_compare_says_how_many_numbers_differ(made, folder):
    said = run("compare", folder / "study", folder / "study")
    assert said.exit_code == 0, said.output
    assert "0 of" in said.stdout
    rows = json.loads(run("compare", folder / "study", folder / "study", "--json").stdout)
    assert len(rows) == 20
    assert {"layer", "head", "quantity", "difference", "low", "high", "differs"} <= set(rows[0])


def test_wrong_settings_are_explained(folder, tmp_path):
    said = run("study", folder / "corpus.txt", "--out", tmp_path, "--null", "silence")
    assert said.exit_code != 0
    assert "null is one of shuffle, random" in str(said.exception)
