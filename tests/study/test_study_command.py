"""`headscope study`, as a person types it."""

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
    for word in ("separators", "centralises", "undecided", "ρ", "null"):
        assert word in made.stdout
    assert hs.open(folder / "study").manifest.corpus.name == "corpus.txt"


def test_progress_as_json_tells_documents_speed_and_failures(made):
    said = [json.loads(line) for line in made.stderr.splitlines() if line.startswith("{")]
    [failure] = [one for one in said if "skipped" in one]
    assert (failure["skipped"], failure["line"]) == ("corpus.txt", 4)
    assert failure["reason"].startswith("not UTF-8: byte 0xff")
    assert said[-1]["documents"] == 3
    assert {"tokens", "tokens_per_second", "seconds", "seconds_left"} <= set(said[-1])
    assert 0.5 < said[-1]["done"] <= 1


def test_progress_into_a_log_is_told_in_words_where_it_is_asked(folder, tiny_folder, tmp_path):
    options = ("--document", "line", "-m", tiny_folder, "--null", "none")
    asked = run("study", folder / "corpus.txt", "--out", tmp_path / "a", *options, "--progress")
    assert asked.exit_code == 0, asked.output
    assert "skipped corpus.txt, line 4: not UTF-8" in asked.stderr
    assert "3 documents, " in asked.stderr
    assert "tokens/s" in asked.stderr
    silent = run("study", folder / "corpus.txt", "--out", tmp_path / "b", *options)
    assert "tokens/s" not in silent.stderr


def test_ctrl_c_promises_nothing_where_nothing_was_saved(folder, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Run, "_observe", interrupted)
        stopped = run("study", folder / "corpus.txt", "--out", tmp_path / "s", "--quiet")
    assert stopped.exit_code == 130
    assert "nothing was saved" in stopped.stderr
    assert "goes on" not in stopped.stderr.replace("nothing to go on", "")


def test_wrong_settings_are_explained(folder, tmp_path):
    for options, says in (
        (("--null", "silence"), "null is one of shuffle, random"),
        (("--readers", "-1"), "readers has to be a number from 0 to 4,096, not -1"),
        (("--device-memory", "0"), "device_memory has to be a number of GiB from 0.1 on, not 0"),
    ):
        said = run("study", folder / "corpus.txt", "--out", tmp_path, *options)
        assert said.exit_code != 0
        assert says in str(said.exception)


@pytest.mark.slow
def test_a_study_with_readers_is_the_study_without(folder, tiny_folder, tmp_path):
    options = ("--document", "line", "-m", tiny_folder, "--null", "none", "--quiet")
    options += ("--device", "cpu")
    for name, readers in (("a", 0), ("b", 1)):
        made = run(
            "study", folder / "corpus.txt", "--out", tmp_path / name, *options, "--readers", readers
        )
        assert made.exit_code == 0, made.output
    one, other = (hs.open(tmp_path / name).manifest for name in ("a", "b"))
    assert one.tables == other.tables
    assert one.parameters == other.parameters
