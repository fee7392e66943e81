"""Compiled code is kept on disk, and never outlives the source that it came from."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headscope
from headscope.compute import compiled

CALLEE = """
from tinypackage.compute.compiled import exact

@exact
def inner(x):
    return x + {added}
"""
CALLER = """
from tinypackage.compute.compiled import exact
from tinypackage.pairs.callee import inner

@exact
def outer(x):
    return 10 * inner(x)
"""
ASK = """
from tinypackage.pairs.caller import outer
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two functions, one calling the other, compiled as ours are."""
    root = tmp_path / "tinypackage"
    for folder in (root, root / "compute", root / "pairs"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    shutil.copy(compiled.__file__, root / "compute" / "compiled.py")
    (root / "pairs" / "caller.py").write_text(CALLER)
    (root / "pairs" / "callee.py").write_text(CALLEE.format(added=1))
    return root


def ask(package: Path, cache: Path) -> tuple[int, int]:
    """What the outer function says in a new process, and whether it came from disk."""
    env = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said, hits = done.stdout.split()
    return int(said), int(hits)


def test_a_change_in_what_a_function_calls_is_compiled_again(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert ask(package, cache) == (20, 0)
    assert ask(package, cache) == (20, 1)  # from disk
    (package / "pairs" / "callee.py").write_text(CALLEE.format(added=2))
    assert ask(package, cache) == (30, 0)


def test_where_nothing_can_be_written_functions_are_compiled_each_time(
    package: Path, tmp_path: Path
) -> None:
    nowhere = tmp_path / "a file, so no folder can be inside"
    nowhere.touch()
    assert ask(package, nowhere) == (20, 0)
    assert ask(package, nowhere) == (20, 0)
    assert not list(package.rglob("*.nb?"))


def test_code_that_nobody_has_asked_for_in_a_month_is_removed_and_nothing_else(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    old, new = cache / "headscope" / ("0" * 16), cache / "headscope" / ("1" * 16)
    other = cache / "headscope" / "somebody else's"
    for folder in (old, new, other):
        folder.mkdir(parents=True)
        (folder / "kept.nbc").touch()
    for folder in (old, other):
        os.utime(folder, (0, 0))
    ask(package, cache)
    assert not old.exists()
    assert (new / "kept.nbc").exists()
    assert (other / "kept.nbc").exists()


def test_whatever_gets_into_compiled_code_is_in_the_folders_it_is_kept_by() -> None:
    """A constant is compiled in; where it stands has to be one of the sources."""
    root = Path(headscope.__file__).parent
    users = [
        file
        for file in root.rglob("*.py")
        if "headscope.compute.compiled import" in file.read_text(encoding="utf-8")
    ]
    assert len(users) > 5
    for file in users:
        assert file.relative_to(root).parts[0] in compiled.SOURCES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("headscope"):
                continue
            if str(node.module).split(".")[1] in compiled.SOURCES:
                continue
            module = importlib.import_module(str(node.module))
            for name in node.names:  # classes and plain functions cannot be compiled in
                assert callable(getattr(module, name.name)), f"{file}: {name.name}"


def test_nothing_in_the_package_asks_numba_itself() -> None:
    root = Path(headscope.__file__).parent
    asking = [f for f in root.rglob("*.py") if "njit" in f.read_text(encoding="utf-8")]
    assert asking == [Path(compiled.__file__)]


BITS = """
import hashlib, numpy as np, torch
from headscope.attention import attention_statistics
from headscope.pairs import TokenBatch, pair_statistics, plain_tokens, quantile

random, lengths = np.random.default_rng(0), (97, 61)
z = torch.from_numpy(random.normal(size=(2, 4, 97, 16)).astype(np.float32))
batch = TokenBatch([plain_tokens(random.integers(0, 20, n)) for n in lengths])
classes = [random.integers(0, 6, n).astype(np.int32) for n in lengths]
seen = attention_statistics(z, z.flip(2), batch, classes, number_of_classes=6)
pairs = pair_statistics(z, batch, quantile(0.05))
arrays = (seen.mass, seen.entropy, seen.columns, pairs.mean, pairs.variance)
print(hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest())
"""


def test_fresh_code_and_code_that_was_kept_give_the_same_bits(tmp_path: Path) -> None:
    """Sums that may be reordered are ordered alike, or a study resumed would end differently."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", BITS],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbc"))
    assert found[0] == found[1]
