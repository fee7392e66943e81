"""Other machines than this one, as far as they can be stood in for here."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils import backend_registration

from headscope.devices import find_device

# Hidden from us, and from the library that locks for us; other libraries ask what system it is.
HIDE = """
import builtins
found = builtins.__import__
def hiding(name, given=None, *rest, **named):
    asking = (given or {}).get("__name__", "").split(".")[0]
    if asking in ("headscope", "filelock") and name in (
        "fcntl", "grp", "pwd", "resource", "termios"
    ):
        raise ModuleNotFoundError(f"no {name} on Windows")
    return found(name, given, *rest, **named)
builtins.__import__ = hiding
"""
IMPORT_ALL = """
import importlib, pkgutil, headscope
for module in pkgutil.walk_packages(headscope.__path__, "headscope."):
    if ".cuda" not in module.name:
        importlib.import_module(module.name)
print("all of them")
"""
STUDY = """
import sys
import headscope as hs
scope = hs.load(sys.argv[1], device="cpu")
study = scope.study(["The sea is the sea.", "The fog is not."], sys.argv[2], replicates=5)
print(study.heads.num_rows, "heads")
"""


def without_posix(code: str, *words: str) -> str:
    """What some code prints in a process without the modules that Windows lacks."""
    command = [sys.executable, "-c", HIDE + code, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_is_imported_without_what_windows_lacks() -> None:
    assert without_posix(IMPORT_ALL) == "all of them"


def test_a_study_is_written_without_what_windows_lacks(tiny_folder: Path, tmp_path: Path) -> None:
    """The lock is another one without fcntl; that of Windows was not run."""
    assert without_posix(STUDY, str(tiny_folder), str(tmp_path / "study")) == "12 heads"
    assert not (tmp_path / "study" / "resume").exists()


@pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch cannot be given a device written in Python",
)
@pytest.mark.parametrize("family", ["bert", "mpnet"])  # seen through both seams
def test_a_device_without_float64_says_what_the_cpu_says(family: str, tmp_path: Path) -> None:
    """What a model shows there comes to the CPU before a statistic is made of it."""
    script = Path(__file__).parent / "elsewhere.py"
    command = [sys.executable, str(script), family, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "the same", done.stderr[-3000:]


def test_apple_s_device_is_taken_where_it_is_asked_for_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("auto").type == "cpu"
    assert find_device("mps").type == "mps"
