"""Benchmarks are run by hand; each is imported here, so that none is left behind by a change."""

import importlib.util
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
