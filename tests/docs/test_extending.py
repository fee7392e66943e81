"""The page on extending does what it says, in a copy of the sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headscope
from headscope.sample import SAMPLE

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BEFORE = {  # before which line of its file each addition goes
    "    neighbours,": "    noise,",
    "    neighbours.MEASURE,": "    noise.MEASURE,",
    "    Claim(": "    Claim(",
    'def neighbours(study: "Study") -> alt.LayerChart:': "FIGURES: Mapping",
    '    "neighbours": neighbours,': '    "noise": noise,',
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the package with everything on the page added to it."""
    folder = tmp_path_factory.mktemp("extended")
    package = Path(headscope.__file__).parent
    shutil.copytree(package, folder / "src" / "headscope", ignore=shutil.ignore_patterns("*.pyc"))
    blocks = re.findall(r'```python title="([^"]+)"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1 + len(BEFORE)
    for path, code in blocks:
        file = folder / path
        if not file.exists():
            file.write_text(code, encoding="utf-8")
            continue
        place = BEFORE[code.splitlines()[0]]
        before, found, after = file.read_text("utf-8").partition(f"\n{place}")
        assert found, f"{path} has no line {place!r}"
        file.write_text(f"{before}\n{code.rstrip()}\n{found}{after}", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_measure_a_claim_and_a_figure_are_added_as_the_page_says(sources):
    def headscope_says(*words):
        found = subprocess.run(
            [sys.executable, "-m", "headscope", *words],
            env=os.environ | {"PYTHONPATH": str(sources / "src")},
            cwd=sources,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    study = ["study", str(SAMPLE), "--document", "paragraph", "--out", "study", "--null", "none"]
    said = headscope_says(*study, "--reading", "raw", "--csv")
    rows = [line for line in said.splitlines() if "the last layers pair neighbours" in line]
    assert len(rows) == 2  # special tokens kept and left out
    headscope_says("figure", "study", "neighbours", "--out", "neighbours.svg")
    assert "Pairs of neighbours" in (sources / "neighbours.svg").read_text("utf-8")
    made = headscope.open(sources / "study").table("neighbours")
    layers = [row for row in made.to_pylist() if row["level"] == "layer" and row["mode"] == "real"]
    assert layers
    assert all(0 <= row["value"] <= 1 and 0 < row["chance"] < 1 for row in layers)
    assert any(row["value"] > 2 * row["chance"] for row in layers)  # early layers join neighbours
