"""What a person may type, and worse: a sentence that says what, where and what to do."""

import ast
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import headscope
from hostile.commands import command, refused

ESCAPE = "\x1b[31m"
# What is typed ("@" stands for the folder of files), and what the answer says.
READ = [
    ("--layer 0", "layers are 1 to 3"),
    ("--layer -1", "layers are 1 to 3"),
    ("--layer 4", "layers are 1 to 3"),
    ("--layer 1.5", "--layer"),
    ("--layer x", "--layer"),
    ("--layer 99999999999999999999", "layers are 1 to 3"),
    ("--head 0", "heads are 1 to 4"),
    ("--head 5", "heads are 1 to 4"),
    ("--head -3", "heads are 1 to 4"),
    ("--rule quantile(0)", "0 < q <= 1"),
    ("--rule quantile(2)", "0 < q <= 1"),
    ("--rule quantile(nan)", "0 < q <= 1"),
    ("--rule nearest(0)", "k >= 1"),
    ("--rule nearest(0.5)", "whole number"),
    ("--rule nearest(1e9)", "whole number"),
    ("--rule sigma(inf)", "finite"),
    ("--rule peak(-1)", "finite share"),
    ("--rule most", "no such rule"),
    ("--rule ()", "no such rule"),
    ("--reading upside", "raw, cosine, centred"),
    ("--special some", "kept, left_out"),
    ("--rows -1", "--rows"),
    ("--rows many", "--rows"),
    ("--device cuda:99", "--device"),
    ("--out @/no/such/x.html", "There is no folder"),
    ("--out @/x.pdf", ".html or .htm"),
    ("--out @/x", ".html or .htm"),
    ("--out @/folder", ".html or .htm"),
    ("--out @/text.txt/x.html", "There is no folder"),
    ("--out /dev/full", ".html"),
    (f"--{ESCAPE}", "No such option"),
    (f"--layer {ESCAPE}", "--layer"),
    (f"--rule {ESCAPE}", "no such rule"),
]
OTHERS = [
    ("read @/latin.txt", "line 1, is not UTF-8: byte 0xe9"),
    ("read @/empty.txt", "empty or only white space"),
    ("read @/nul.txt", "full of zero bytes"),
    ("read @/folder", "is a folder"),
    ("read @/nowhere.txt", "There is no file"),
    ("read @/loop.txt", "There is no file"),
    ("read", "Missing argument"),
    ("read sea -m @/folder", "no config.json"),
    ("read sea -m @/text.txt", "There is no folder"),
    ("read sea -m @/nowhere", "There is no folder"),
    ("read sea -m a/b/c/d", "There is no folder"),
    (f"read sea -m {ESCAPE}", "There is no folder"),
    ("models -m @/folder", "no config.json"),
    ("models -m @/nowhere", "Leave --model out"),
    ("segment sea --n 0", "at least 1"),
    ("segment sea --n -3", "at least 1"),
    ("segment sea --granularity 0", "above 0"),
    ("segment sea --granularity nan", "above 0"),
    ("segment sea --granularity inf", "above 0"),
    ("segment sea --granularity -1", "above 0"),
    ("segment sea --level word", "'topic' or 'sentence'"),
    ("segment sea --segmenter @/nowhere.json", "There is no file"),
    ("segment sea --segmenter @/folder", "is a folder"),
    ("segment sea --segmenter @/text.txt", "no segmenter"),
    ("segment @/latin.txt", "byte 0xe9"),
    ("report @/folder", "no study"),
    ("report @/nowhere", "no study"),
    ("report @/text.txt", "no study"),
    ("report @/study -o @/no/x.html", "There is no folder"),
    ("report @/study -o @/folder", ".html"),
    ("report @/study -o @/x.pdf", ".html"),
    ("figure @/study focus -o @/x.gif", ".svg, .png, .pdf or .html"),
    ("figure @/study focus -o @/no/x.svg", "There is no folder"),
    ("figure @/study focus -o @/folder", "must end in"),
    ("figure @/study upside", "there are: focus"),
    ("figure @/study", "there are: focus"),
    ("figure @/nowhere focus", "no study"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --layer 0", "layers are 1 to 3"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --head 9", "heads are 1 to 4"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens 5:2", "No token"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens 900:901", "from 0 to"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens a:b", "FROM:TO"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens 3", "FROM:TO"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens ²:³", "FROM:TO"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --tokens -5:-2", "FROM:TO"),
    ("figure @/text.txt matrix -m @/model -o @/x.svg --reading upside", "raw, cosine, centred"),
    ("figure @/latin.txt matrix -m @/model -o @/x.svg", "byte 0xe9"),
    ("figure @/folder matrix -m @/model -o @/x.svg", "is a folder"),
    ("figure @/nowhere matrix -m @/model -o @/x.svg", "There is no file"),
    ("compare @/study @/nowhere", "no study"),
    ("compare @/study @/study --rows -1", "--rows"),
    ("compare @/study", "Missing argument"),
    ("study @/nowhere.txt --out @/new", "There is no file or folder"),
    ("study @/folder --out @/new", "holds no file"),
    ("study @/text.txt --out @/text.txt", "is a file"),
    ("study @/text.txt --out @/new --document page", "a paragraph"),
    ("study @/text.txt --out @/new --rule most", "no such rule"),
    ("study @/text.txt --out @/new --reading upside", "raw, cosine, centred"),
    ("study @/text.txt --out @/new --special some", "kept, left_out"),
    ("study @/text.txt --out @/new --null some", "shuffle"),
    ("study @/text.txt --out @/new --window 0", "window has to be"),
    ("study @/text.txt --out @/new --window 1", "no room for a pair"),
    ("study @/text.txt --out @/new --window -5", "window has to be"),
    ("study @/text.txt --out @/new --window 100000", "64 tokens"),
    ("study @/text.txt --out @/new --seed -1", "seed has to be"),
    ("study @/text.txt --out @/new --seed 99999999999999999999", "seed has to be"),
    ("study @/text.txt --out @/new --device foo", "--device"),
    ("study @/text.txt", "--out"),
    ("view @/nowhere.txt --no-open", "There is no file"),
    ("view a b --no-open", "one text and one study"),
    ("view @/study @/study --no-open", "one text and one study"),
    ("view x --port 99999 --no-open", "--port"),
    ("view x --port -1 --no-open", "--port"),
    ("view x --no-open --device foo", "--device"),
    ("view @/latin.txt --no-open", "byte 0xe9"),
    ("nothing", "No such command"),
    (ESCAPE, "No such command"),
    (f"read sea {ESCAPE}x {ESCAPE}y --nothing", "No such option"),
]


def words(typed: str, place: Path) -> list[str]:
    return [word.replace("@/", f"{place}/") for word in typed.split()]


@pytest.mark.parametrize(("typed", "says"), READ)
def test_a_wrong_option_is_answered_in_a_sentence(place: Path, typed: str, says: str) -> None:
    refused("read", "The sea and fog.", "-m", place / "model", *words(typed, place), says=says)


@pytest.mark.parametrize(("typed", "says"), OTHERS)
def test_a_wrong_command_is_answered_in_a_sentence(place: Path, typed: str, says: str) -> None:
    model = () if "-m" in typed or typed.split()[0] not in MODELS else ("-m", place / "model")
    refused(*words(typed, place), *model, says=says)
    assert not (place / "new" / "manifest.json").exists()


MODELS = {"read", "segment", "study", "view"}


@pytest.mark.parametrize("verb", ["read", "segment", "view"])
@pytest.mark.parametrize("text", ["\ud800", "sea \udcff", "\udce9t\udce9"])
def test_words_that_are_no_utf8_are_not_read(place: Path, verb: str, text: str) -> None:
    refused(verb, text, "-m", place / "model", says="not UTF-8 (at character")


@pytest.mark.parametrize("typed", ["read {}", "report {}", "figure {} focus", "read sea -m {}"])
def test_a_name_cannot_steer_the_terminal(typed: str) -> None:
    answer = command(*typed.format(f"no{ESCAPE}\x07\x9b31m\u202e.txt").split())
    assert answer.status == 2
    assert "\\x1b[31m\\x07\\x9b31m\\u202e.txt" in answer.error
    for steering in "\x1b\x07\x9b\u202e":
        assert steering not in answer.out + answer.err


def test_a_text_cannot_steer_the_terminal(place: Path) -> None:
    text = f"The {ESCAPE}sea\x9b31m and \x07the \u202efog."
    for verb in (("read", "--rule", "quantile(1.0)"), ("read", "--json"), ("segment", "--json")):
        answer = command(*verb, text, "-m", place / "model")
        assert answer.status == 0, answer.err
        for steering in "\x1b\x07\x9b\u202e":
            assert steering not in answer.out + answer.err


def test_an_error_of_nobody_is_a_sentence_and_a_traceback_where_asked(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nobody")

    monkeypatch.setattr("headscope.scope.load", broken)
    for words, traced in ((("models",), False), (("--debug", "models"), True)):
        answer = command(*words)
        assert answer.status == 2
        assert "a fault of headscope, not yours (ZeroDivisionError: by nobody)" in answer.error
        assert "headscope --debug" in answer.error
        assert ("Traceback" in answer.err) is traced


def run(*typed: object, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "headscope", *map(str, typed)],
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=120,
        **{"capture_output": True} | options,  # type: ignore[arg-type]
    )


def test_a_full_disk_is_named(place: Path) -> None:
    with open("/dev/full", "w") as full:
        done = run("models", "-m", place / "model", capture_output=False, stdout=full,
                   stderr=subprocess.PIPE)  # fmt: skip
    assert done.returncode == 2
    assert "No space left on device. Make room" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_page_that_does_not_fit_leaves_the_one_before(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("the one before")

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    done = run("read", "The sea.", "-m", place / "model", "--out", page, preexec_fn=little)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert page.read_text() == "the one before"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.slow
def test_a_terminal_of_another_alphabet_stops_nothing(place: Path) -> None:
    for encoding in ("ascii", "latin-1", "cp1252"):
        done = run("read", "Ада 👍 × sea", "-m", place / "model",
                   env=os.environ | {"PYTHONIOENCODING": encoding})  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_no_error_of_ours_is_a_bare_one() -> None:
    """So the command line need not take every ValueError for a person's mistake."""
    source = Path(headscope.__file__).parent
    bare = {"ValueError", "IndexError", "KeyError", "RuntimeError", "TypeError", "Exception"}
    found = []
    for file in source.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        caught = {  # by the function's own `try`
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.Try)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, "id", "")
                if name in bare and id(node) not in caught and not _is_said(node, file):
                    found.append(f"{file.relative_to(source)}:{node.lineno} {name}")
            if isinstance(node, ast.ClassDef) and file.name != "errors.py":
                bases = {getattr(base, "id", "") for base in node.bases}
                if any(base.endswith(("Error", "Exception")) for base in bases):
                    found.append(f"{file.relative_to(source)}:{node.lineno} class {node.name}")
    assert found == []


def _is_said(node: ast.Raise, file: Path) -> bool:
    """Raised to a caller in the same file that says it as an error of ours."""
    return file.name in ("devices.py", "segmenter.py")
