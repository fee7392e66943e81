"""What the verbs print, for people, for tables and for programs."""

import csv
import io
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from rich.text import Text

import headscope as hs
from headscope.cli import app
from headscope.errors import CannotWrite, HeadscopeError
from headscope.study.folder import Study
from headscope.terminal import write_csv
from hostile.commands import command, refused

TEXT = "The keeper lit the lamp at dusk. The lamp burned all night."


def rows(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


@pytest.fixture(scope="module")
def study(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return tiny.study([TEXT, "A ship passed."], tmp_path_factory.mktemp("commands") / "study")


def test_the_specimen_has_a_name() -> None:
    assert "specimen" in command("models", "-m", "specimen").out
    assert hs.load("specimen").shape == hs.load().shape


def test_models_says_what_can_be_seen(tiny_folder: Path) -> None:
    out = command("models", "-m", tiny_folder).out
    assert "can be seen     head vectors and attention" in out
    assert "seam" not in out


def test_what_can_be_seen_is_printed_as_a_table(tiny_folder: Path) -> None:
    (said,) = rows(command("models", "-m", tiny_folder, "--csv").out)
    assert (said["family"], said["heads"], said["head size"]) == ("bert", "4 in a layer", "8")


def test_several_texts_are_read_one_after_the_other(tiny_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("A ship passed the rocks.")
    out = command("read", TEXT, file, "-m", tiny_folder).out
    assert out.index("1. The keeper lit") < out.index("2. ") < out.index("6 words in 1 sentence,")
    lines = command("read", TEXT, file, "-m", tiny_folder, "--json").out.splitlines()
    assert [len(json.loads(line)["tokens"]) > 5 for line in lines] == [True, True]
    refused("read", TEXT, file, "-m", tiny_folder, "--out", tmp_path / "x.html", says="of one text")


def test_one_word_is_one_word(tiny_folder: Path) -> None:
    assert "1 word in 1 sentence," in command("read", "sea", "-m", tiny_folder).out


def test_pairs_are_printed_as_a_table_with_commas(tiny_folder: Path, tiny: hs.Scope) -> None:
    options = ("-m", tiny_folder, "--layer", "2", "--head", "3", "--rule", "quantile(0.2)")
    found = rows(command("read", TEXT, TEXT, *options, "--csv").out)
    pairs = tiny.read(TEXT).high_pairs(2, 3, "quantile(0.2)")
    assert [row["text"] for row in found] == ["1"] * len(pairs) + ["2"] * len(pairs)
    assert [float(row["similarity"]) for row in found] == 2 * [p.similarity for p in pairs]
    assert found[0]["first_word"] == pairs[0].first_word


def test_segments_and_comparisons_are_printed_as_tables(tiny_folder: Path, study: Study) -> None:
    found = rows(command("segment", TEXT, "-m", tiny_folder, "--csv").out)
    assert "".join(row["text"] for row in found) == TEXT
    numbers = rows(command("compare", study.path, study.path, "--csv").out)
    assert numbers
    assert {"layer", "head", "quantity", "difference"} <= set(numbers[0])


def test_the_findings_of_a_study_are_printed_as_a_table(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    done = command("study", tmp_path / "text.txt", "--out", tmp_path / "study", "-m", tiny_folder,
                   "--csv", "--quiet")  # fmt: skip
    findings = hs.open(tmp_path / "study").findings
    assert [row["claim"] for row in rows(done.out)] == findings["claim"].to_pylist()
    again = command("study", tmp_path / "text.txt", "--out", tmp_path / "study", "-m", tiny_folder,
                    "--json")  # fmt: skip
    assert json.loads(again.out) == {"findings": findings.to_pylist()}


def test_no_word_of_the_help_is_taken_for_markup() -> None:
    for verb in app.registered_commands:
        assert verb.callback is not None
        hints = get_type_hints(verb.callback, include_extras=True).values()
        options = [said for hint in hints for said in get_args(hint)[1:]]
        assert options
        for said in (verb.callback.__doc__, *(option.help for option in options)):
            assert Text.from_markup(said or "").plain == (said or "")


def test_the_figures_are_listed_without_a_study() -> None:
    assert command("figure", "list").out == command("figure", "anything", "list").out
    assert "focus, " in command("figure", "list").out


def test_a_shell_completes_the_verbs() -> None:
    code = "from headscope.cli import main; main()"
    words = {
        "_HEADSCOPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "headscope se",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'headscope'; " + code],
        env={**words, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.split() == ["segment"], done.stderr


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.html.txt"])
def test_a_page_is_written_as_a_page_only(
    tiny: hs.Scope, study: Study, tmp_path: Path, name: str
) -> None:
    for does in (tiny.read(TEXT).save, study.save, study.report):
        with pytest.raises(CannotWrite, match=r"must end in \.html"):
            does(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_focus_shows_itself(tiny: hs.Scope) -> None:
    focus = tiny.read(TEXT).focus()
    shown = repr(focus)
    assert shown.startswith("Where attention goes, by layer")
    assert f"{100 * focus.by_layer()[0, 0]:.1f}" in shown
    assert "array(" not in shown
    assert focus._repr_html_().count("<tr>") == 3 + 2


def test_a_table_of_a_study_shows_itself_and_is_arrow_all_the_same(study: Study) -> None:
    heads = study.heads
    assert len(heads) == heads.num_rows == 12
    assert "labels" in repr(heads)
    assert "pyarrow" not in repr(heads)
    assert heads["layer"].to_pylist() == study.table("heads")["layer"].to_pylist()
    assert heads._repr_html_().count("<tr>") == 12 + 1
    assert "The first 20 of" in repr(study.anchor)


def test_a_wide_table_is_as_wide_as_a_terminal_and_names_what_is_left(study: Study) -> None:
    for table in (study.findings, study.heads, study.focus):
        lines = repr(table).splitlines()
        assert max(map(len, lines[:-1])) <= 120
        shown, _, others = repr(table).rpartition("More columns: ")
        named = [*shown.splitlines()[0].split(), *others.rstrip(".").split(", ")]
        assert named == table.column_names


def test_windows_and_tokens_show_themselves_in_a_line(tiny: hs.Scope) -> None:
    windows = tiny.read(TEXT * 9).windows
    assert repr(windows[0].tokens).startswith("<Tokens: 64, ")
    assert repr(windows[1]).startswith("<Window: tokens 4")
    assert len(repr(windows)) < 100 * len(windows)


def test_an_empty_text_is_no_folder() -> None:
    assert "The text is empty" in command("read", "").err
    assert "folder" not in command("read", "").err


def test_a_high_pair_is_one() -> None:
    assert "1 high pair of 3" in command("read", "lamp").out


def test_lists_in_a_table_with_commas_are_json(study: Study, capsys: Any) -> None:
    write_csv(study.findings.to_pylist()[:1], study.findings.column_names)
    [row] = rows(capsys.readouterr().out)
    assert json.loads(row["nulls"]) == study.findings.to_pylist()[0]["nulls"]


def test_without_pandas_a_table_says_how_to_get_it(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HeadscopeError, match=r"pip install 'headscope\[pandas\]'"):
        study.heads.to_pandas()
    assert np.isfinite(study.heads["layer"].to_numpy()).all()


def test_with_pandas_a_table_is_a_data_frame(study: Study) -> None:
    pytest.importorskip("pandas")
    assert list(study.heads.to_pandas()["layer"]) == study.heads["layer"].to_pylist()


def test_what_is_said_to_be_installed_can_be() -> None:
    """Every extra that an error or a page names is one."""
    root = Path(__file__).parent.parent
    pages = [*root.glob("src/**/*.py"), *root.glob("docs/*.md"), root / "README.md"]
    named = {
        extra
        for page in pages
        for extra in re.findall(r"headscope\[(\w+)\]", page.read_text(encoding="utf-8"))
    }
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named
    assert named <= set(project["optional-dependencies"])
