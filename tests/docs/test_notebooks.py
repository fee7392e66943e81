"""The notebooks run from top to bottom where there is no hub, and what is kept of them is small."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST = 200_000  # bytes


def codes(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_what_is_kept_of_a_notebook_is_small_and_names_no_machine(file: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(file, as_version=4)
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST
    assert re.findall(r'["\s(](?:/tmp|/home|/root|/Users|[A-Z]:\\\\)[^"\s]*', text) == []
    kept = [output for cell in codes(notebook) for output in cell.outputs]
    assert kept, "run: python notebooks/run.py"
    assert [one for one in kept if one.output_type == "error"] == []
    assert [cell.execution_count for cell in codes(notebook) if cell.execution_count] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own making
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_as_it_stands(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nbclient")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for each other spin
    spec = importlib.util.spec_from_file_location("run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    notebook = run.small(run.executed(file, str(tmp_path)))
    errors = [one for cell in codes(notebook) for one in cell.outputs if "ename" in one]
    warned = [
        one for cell in codes(notebook) for one in cell.outputs if one.get("name") == "stderr"
    ]
    assert errors == []
    assert warned == []
    before = pytest.importorskip("nbformat").read(file, as_version=4)
    shows = [[bool(cell.outputs) for cell in codes(one)] for one in (before, notebook)]
    assert shows[0] == shows[1]


def test_there_is_a_notebook_for_each_task() -> None:
    assert len(NOTEBOOKS) == 5
