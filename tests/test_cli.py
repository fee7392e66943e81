"""The command line as a person and a pipe meet it: in a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headscope as hs

HEADSCOPE = [sys.executable, "-c", "from headscope.cli import main; main()"]


def run(*words: str, given: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
    data = given if isinstance(given, bytes) else given.encode()
    done = subprocess.run(
        [*HEADSCOPE, *words],
        input=data,
        capture_output=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "100", **env},
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> str:
    return str(tiny_folder)


def test_read_prints_focus_and_pairs(model: str) -> None:
    done = run("read", "The sea is the sea. The fog is not.", "-m", model)
    assert done.returncode == 0, done.stderr
    assert "3 layers × 4 heads × 8" in done.stdout
    assert "chance" in done.stdout
    assert "Layer 3, head 1" in done.stdout


def test_a_pipe_gets_neither_colour_nor_progress(model: str) -> None:
    done = run("read", "-", "-m", model, given="The sea is the sea.")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_read_takes_a_file_a_text_and_standard_input_alike(model: str, tmp_path: Path) -> None:
    text = "The lamp is gone, and the keeper is gone."
    file = tmp_path / "text.txt"
    file.write_text(text)
    found = [
        run("read", str(file), "-m", model, "--json").stdout,
        run("read", text, "-m", model, "--json").stdout,
        run("read", "-", "-m", model, "--json", given=text).stdout,
    ]
    assert found[0] == found[1] == found[2]


def test_json_says_what_the_library_says(model: str, tiny: hs.Scope) -> None:
    text = "The lamp is gone. Ада 👍 gone?"
    options = ("--layer", "2", "--head", "3", "--rule", "nearest(1)", "--reading", "cosine")
    done = run("read", text, "-m", model, "--json", *options, "--special", "left_out")
    found = json.loads(done.stdout)
    reading = tiny.read(text)
    pairs = reading.high_pairs(2, 3, "nearest(1)", reading="cosine", special="left_out")
    assert found["high_pairs"]["pairs"] == pairs.rows()
    assert [t["piece"] for t in found["tokens"]] == list(reading.tokens.pieces)
    assert found["focus"]["targets"] == list(reading.focus().targets)
    assert found["model"]["layers"] == 3


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        (("read", "nowhere.txt"), "", "There is no file 'nowhere.txt'"),
        (("read", "   "), "", "empty or only white space"),
        (("read", "-"), b"caf\xe9", "line 1, is not UTF-8: byte 0xe9"),
        (("read", "sea", "--layer", "9"), "", "layers are 1 to 3"),
        (("read", "sea", "--rule", "most"), "", "most"),
        (("read", "sea", "--reading", "upside"), "", "upside"),
    ],
)
def test_mistakes_are_answered_without_a_traceback(
    model: str, words: tuple[str, ...], given: str | bytes, says: str
) -> None:
    done = run(*words, "-m", model, given=given)
    assert done.returncode == 2
    assert re.search(says, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_a_text_spells_is_never_taken_for_markup(model: str, tmp_path: Path) -> None:
    text = "[bold red]sea[/] and </script><img src=x onerror=alert(1)> [link=x]fog[/link] sea"
    page = tmp_path / "page.html"
    done = run(
        "read", text, "-m", model, "--rule", "quantile(1.0)", "--rows", "400", "--out", str(page)
    )
    assert done.returncode == 0, done.stderr
    written = page.read_text(encoding="utf-8")
    assert "img src=x" not in written  # the text is inside, as base64
    assert str(page) in done.stderr.replace("\n", "")


def test_the_dtype_of_the_weights_can_be_chosen(model: str) -> None:
    text = "The lamp is gone, and the keeper is gone."
    found = {
        dtype: json.loads(run("read", text, "-m", model, "--json", "--dtype", dtype).stdout)
        for dtype in ("float32", "bfloat16")
    }
    exact, rough = (found[dtype]["high_pairs"]["pairs"] for dtype in ("float32", "bfloat16"))
    assert exact[0]["similarity"] == pytest.approx(rough[0]["similarity"], rel=0.05)
    assert exact != rough
    said = run("read", text, "-m", model, "--dtype", "float7")
    assert said.returncode == 2
    assert "no dtype 'float7'" in said.stderr


def test_models_says_what_can_be_observed(model: str) -> None:
    shown = run("models", "-m", model).stdout
    assert "layers" in shown
    assert json.loads(run("models", "-m", model, "--json").stdout)["seam"] == "interface"


def test_help_and_version_need_no_model() -> None:
    assert "counted from 1" in run("--help").stdout
    assert run("--version").stdout.strip() == f"headscope {hs.__version__}"


def test_importing_headscope_is_light() -> None:
    code = (
        "import sys, time; began = time.perf_counter(); import headscope; "
        "import headscope.cli; took = time.perf_counter() - began; "
        "heavy = {'torch', 'transformers', 'numba', 'pyarrow'} & set(sys.modules); "
        "print(took, sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took, heavy = done.stdout.strip().split(" ", 1)
    assert heavy == "[]"
    assert float(took) < 2  # a tenth of a second on an idle machine
