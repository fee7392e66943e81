"""Benchmarks are run by hand; each is imported here, so that none is left behind by a change."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_can_be_imported(path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "pairs"))
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ModuleNotFoundError as missing:
        if missing.name.startswith("headscope") or (path.parent / f"{missing.name}.py").exists():
            raise
        pytest.skip(f"{missing.name} is not installed: pip install 'headscope[bench]'")


def test_the_steps_of_a_head_can_be_timed():
    """They are inner functions, which nothing else calls from outside."""
    code = "import pairs; pairs.where_the_time_goes(size=64, d=16)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert "candidates (_collect)" in found.stdout
