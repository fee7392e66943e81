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
    lines = run("-", "--model", str(tiny_folder), "--n", "3").splitlines()
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
