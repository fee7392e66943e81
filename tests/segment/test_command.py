"""The verb `segment` on the command line: for people, for pipes, for programs."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headscope.cli import app
from headscope.segment.segments import Explanation, Segment, Segments
from headscope.segment.terminal import print_segments

TEXT = (
    "The cat sleeps on the mat. It dreams of fish. Cats hunt mice.\n"
    "The ship left the harbour. [bold]Waves[/] broke. The captain slept.\n"
)


def run(*arguments: str, text: str = TEXT) -> str:
    result = CliRunner().invoke(app, ["segment", *arguments], input=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_pipe_gets_one_segment_a_line(tiny_folder: Path):
    inside = ("--n", "3", "--inside-paragraphs")
    lines = run("-", "--model", str(tiny_folder), *inside).splitlines()
    assert len(lines) == 3
    assert " ".join(lines) == " ".join(TEXT.split())


def test_json_holds_offsets_scores_and_texts(tiny_folder: Path):
    found = json.loads(run("-", "--model", str(tiny_folder), "--n", "2", "--json"))
    assert found["level"] == "topic"
    assert "".join(segment["text"] for segment in found["segments"]) == TEXT
    assert [TEXT[s["start"] : s["end"]] for s in found["segments"]] == [
        s["text"] for s in found["segments"]
    ]
    assert [s["score"] > 0 for s in found["segments"]] == [False, True]


def test_more_segments_than_paragraphs_are_not_made_and_that_is_said(tiny_folder: Path):
    result = CliRunner().invoke(app, ["segment", "-", "--model", str(tiny_folder), "-n", "3"], TEXT)
    assert len(result.stdout.splitlines()) == 2
    assert "--inside-paragraphs" in result.stderr


def test_progress_is_told_into_a_file_where_that_is_asked_for(tiny_folder: Path):
    arguments = ["segment", "-", "--model", str(tiny_folder), "--n", "2"]
    assert CliRunner().invoke(app, arguments, TEXT).stderr == ""
    told = CliRunner().invoke(app, [*arguments, "--progress"], TEXT).stderr
    assert told.splitlines()[-1] == "reading units: 6 of 6"


def test_why_it_is_cut_there_is_said_in_words_and_in_json(tiny_folder: Path):
    asked = ("-", "--model", str(tiny_folder), "--n", "2", "--explain")
    words = run(*asked)
    assert words.startswith("2 segments of 6 sentences, 2 asked for.")
    assert "Segment 2 begins with “The ship left the harbour." in words
    assert "a new paragraph" in words
    assert max(map(len, words.splitlines())) <= 100
    found = json.loads(run(*asked, "--json"))
    (reason,) = found["explanation"]["boundaries"]
    assert reason["at"] == found["segments"][1]["start"]
    assert reason["turn"] == "paragraph"
    assert reason["worth"] == pytest.approx(reason["unlike"] + reason["learned"], abs=2e-4)
    assert reason["left_out"] == pytest.approx(reason["worth"] - reason["price"], abs=2e-4)


def test_what_cannot_be_cut_is_explained_too(tiny_folder: Path):
    for text in ("", " \n", "One sentence."):
        words = run("-", "--model", str(tiny_folder), "--explain", text=text)
        assert words == "One sentence cannot be cut into topics.\n"
        found = json.loads(run("-", "--model", str(tiny_folder), "--explain", "--json", text=text))
        assert found["explanation"]["boundaries"] == []


def test_no_boundary_costs_less_than_nothing(tiny_folder: Path):
    asked = ("-", "--model", str(tiny_folder), "--n", "6", "--inside-paragraphs", "--explain")
    reasons = json.loads(run(*asked, "--json"))["explanation"]["boundaries"]
    assert len(reasons) == 5
    assert all(reason["price"] >= 0 for reason in reasons)
    assert "costs -" not in run(*asked)


def test_sentences_are_explained_too(specimen_command):
    words = specimen_command("--level", "sentence", "--explain")
    assert "log odds" in words
    assert "The ship left" in words


@pytest.fixture
def specimen_command():
    return lambda *arguments: run("-", *arguments)


def test_offsets_alone(tiny_folder: Path):
    lines = run("-", "--model", str(tiny_folder), "--n", "2", "--offsets").splitlines()
    (start, cut), (again, end) = (tuple(map(int, line.split("\t"))) for line in lines)
    assert (start, cut, end) == (0, again, len(TEXT))


def test_an_empty_file_has_nothing_to_show(tiny_folder: Path):
    assert run("-", "--model", str(tiny_folder), text="") == ""


@pytest.mark.parametrize("level", ["topic", "sentence"])
def test_a_terminal_shows_every_word_in_colour_and_no_markup_is_read(level: str):
    words = ["One [red]cat[/]. ", "Two ships."]
    text = "".join(words)
    parts = [Segment(text, 0, 17, 0.0), Segment(text, 17, 27, 1.5)]
    console = Console(file=StringIO(), force_terminal=True, width=80)
    print_segments(Segments(text, level, parts, _unexplained()), console)
    shown = console.file.getvalue()
    assert "\x1b[36m" in shown  # the first segment is cyan
    assert "One [red]cat[/]." in shown
    assert "Two ships." in shown


def _unexplained() -> Explanation:
    import numpy as np

    nothing = np.zeros(0)
    return Explanation((), (), nothing, nothing, nothing, (), np.zeros((0, 0), dtype=np.float32))
