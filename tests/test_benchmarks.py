"""Benchmarks are run by hand; here on small shapes, so that none is left behind by a change."""

import importlib.util
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from places import SHARED

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_can_be_imported(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ModuleNotFoundError as missing:
        if missing.name.startswith("headscope") or (path.parent / f"{missing.name}.py").exists():
            raise
        pytest.skip(f"{missing.name} is not installed: pip install 'headscope[bench]'")


def part(*steps, marks=()):
    """Commands that are run one after the other, each with what it has to print."""
    name = re.match(r"([a-z_]+)[.]py( [a-z]+)?", steps[0][0])
    return pytest.param(steps, id="".join(name.groups("")), marks=marks)


SHARED_DATA = pytest.mark.shared
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
OTHERS = ("blingfire", "nltk", "pysbd", "sklearn", "syntok")
BENCH = pytest.mark.skipif(
    not all(map(find_spec, OTHERS)), reason="needs pip install 'headscope[bench]'"
)
RAY = pytest.mark.skipif(not find_spec("ray"), reason="needs pip install 'headscope[ray]'")
SHORT = "--texts 1 --tokens 64 --rounds 1"
FEW = "--data {data} --cache {out} --documents 2 --sets enwiki"
PARTS = [
    part((f"pairs.py forward {SHORT} --layers 1", "| + pairs, cosine |")),
    part(("pairs.py growth --longest 128 --plot {out}/growth.svg", "| 1 x 128 | 24 | 64 |")),
    part(("pairs.py steps --tokens 64", "| candidates (_collect) |")),
    part(("pairs.py long --longest 128 --layers 1", "1 x 128 tokens with all statistics")),
    part((f"study.py specimen {SHORT}", "| all of it, dense (our reference) |")),
    part((f"study.py base {SHORT}", "| all of it, dense (our reference) |")),
    part(("study.py memory --documents 40", " 40 documents ")),
    part(
        ("scale.py engines --megabytes 0.001 --rounds 1 --only 2", "| Ray, 2 actors |"), marks=RAY
    ),
    part(("scale.py steady --megabytes 0.001 --rounds 1 --only '1 thread'", "| here, 1 thread |")),
    part(("scale.py states --states 2", "2 states: ")),
    part(("scale.py read --megabytes 0.01", "a window a token")),
    part(("textbooks.py {data} {out}/textbooks", "60 of "), marks=SHARED_DATA),
    part(
        ("effects.py {data} --batches 1", "gradient: "),
        ("effects.py {data} --write {out}/wiki.txt", "200 documents are in "),
        marks=SHARED_DATA,
    ),
    part(
        ("precision.py {data} --passages 1 --characters 200", "float16, cosine: "),
        marks=SHARED_DATA,
    ),
    part(
        (
            "findings.py {data} {out} --passages 1 --null-tokens 50 --corpus Alice",
            "| shape of `range` |",
        ),
        ("findings.py {data} {out} --only-tell", "| shape of `range` |"),
        marks=SHARED_DATA,
    ),
    part(
        (f"segment.py read --half choose {FEW}", " units, "),
        (f"segment.py read {FEW}", " units, "),
        (f"segment.py topics {FEW}", "| headscope | chosen |"),
        ("segment_fit.py topics --data {data} --cache {out} --out {out}/topics.json", "penalty "),
        marks=[SHARED_DATA, BENCH],
    ),
    part(
        (f"segment.py whole {FEW}", "| headscope, even parts as units | chosen |"),
        marks=[SHARED_DATA, BENCH],
    ),
    part(
        ("segment_fit.py sentences --data {data} --gaps 50 --out {out}/sentences.json", "bare: F1"),
        marks=[SHARED_DATA, BENCH],
    ),
    part(
        ("segment_sentences.py --data {data} --documents 2", "| headscope |"),
        marks=[SHARED_DATA, BENCH],
    ),
    part((f"pairs_gpu.py {SHORT}", "| 256 x 128 | 12 | 64 |"), marks=GPU),
    part(("study_gpu.py --texts 1 --tokens 64 --batches 1", "host, types: "), marks=GPU),
    part(("check_gpu.py --small --shard 0/8", ": 0 of "), marks=GPU),
]


def test_every_benchmark_has_its_parts_run():
    scripts = (ROOT / "benchmarks").glob("*.py")
    programs = {path.name for path in scripts if "__main__" in path.read_text(encoding="utf-8")}
    assert programs == {step.split()[0] for each in PARTS for step, _ in each.values[0]}


@pytest.mark.benchmark
@pytest.mark.parametrize("steps", PARTS)
def test_a_part_of_a_benchmark_runs_on_something_small(steps, tmp_path):
    for command, says in steps:
        places = {"data": SHARED / "data", "out": tmp_path}
        script, *arguments = (word.format(**places) for word in shlex.split(command))
        found = subprocess.run(
            [sys.executable, ROOT / "benchmarks" / script, *arguments],
            capture_output=True,
            text=True,
        )
        assert found.returncode == 0, found.stdout + found.stderr
        assert says in found.stdout
