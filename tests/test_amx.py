"""AMX that is advertised and does not work is kept from torch, and nothing else is touched."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headscope import amx

SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu avx512f avx512_fp16 amx_bf16 amx_tile amx_int8\n"
ZEN = "processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd bf16 sme\n"


def limited(
    tmp_path: Path, told: str, *, works: bool, environ: dict[str, str] | None = None
) -> dict[str, str]:
    """The environment after a look at a machine whose processor is told of like this."""
    cpuinfo, found = tmp_path / "cpuinfo", dict(environ or {})
    cpuinfo.write_text(told)
    amx.spare_torch(found, cpuinfo, lambda: works)
    return found


@pytest.fixture
def on_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")


@pytest.mark.usefixtures("on_x86")
def test_tiles_that_do_not_work_are_kept_from_torch(tmp_path: Path) -> None:
    found = limited(tmp_path, SAPPHIRE_RAPIDS, works=False)
    assert found == {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}


@pytest.mark.usefixtures("on_x86")
@pytest.mark.parametrize(
    ("told", "works"), [(SAPPHIRE_RAPIDS, True), (ZEN, False), (ARM, False), ("", False)]
)
def test_other_processors_are_left_alone(tmp_path: Path, told: str, works: bool) -> None:
    assert limited(tmp_path, told, works=works) == {}


@pytest.mark.usefixtures("on_x86")
@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"])
def test_a_person_s_own_limit_stays(tmp_path: Path, name: str) -> None:
    own = {name: "AVX2"}
    assert limited(tmp_path, SAPPHIRE_RAPIDS, works=False, environ=own) == own


@pytest.mark.parametrize(
    ("system", "machine"), [("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")]
)
def test_other_systems_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert limited(tmp_path, SAPPHIRE_RAPIDS, works=False) == {}


def test_a_machine_without_a_list_of_processors_is_left_alone(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    amx.spare_torch(environ, tmp_path / "nothing", lambda: False)
    assert environ == {}


@pytest.mark.skipif(not amx.CPUINFO.exists(), reason="no list of processors on this system")
def test_the_child_that_tries_a_tile_tells_this_machine_as_it_is() -> None:
    """It is the kernel that says no on a processor without AMX; with AMX a tile decides."""
    done = subprocess.run([sys.executable, "-I", "-S", amx.__file__], capture_output=True)
    assert amx.tiles_work() == (done.returncode == 0)
    assert done.returncode in (0, 1, -signal.SIGILL)
    if "amx_tile" not in amx.CPUINFO.read_text():
        assert not amx.tiles_work()


def test_a_child_that_dies_of_a_tile_is_a_no(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text(f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})")
    monkeypatch.setattr(amx, "__file__", str(dying))
    assert not amx.tiles_work()


HALF = """
import sys
import numpy as np
import headscope as hs
scope = hs.load(sys.argv[1], device="cpu", dtype=sys.argv[2])
assert str(scope.model.dtype) == f"torch.{sys.argv[2]}"
assert np.isfinite(scope.read("The sea is the sea.").similarity(3, 1)).all()
"""
PRODUCT = """
import sys, torch
kind = getattr(torch, sys.argv[2])
torch.nn.Linear(64, 64).to(kind)(torch.randn(64, 64, dtype=kind))
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_in_16_bits_is_read_on_any_processor(tiny_folder: Path, dtype: str) -> None:
    """In a process of its own: where torch cannot multiply in 16 bits, it is torch that dies."""
    done = in_child(HALF, tiny_folder, dtype)
    if done.returncode < 0:
        without = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
        plain = in_child(PRODUCT, tiny_folder, dtype, env=without)
        if plain.returncode < 0:
            number = signal.Signals(-plain.returncode).name
            pytest.skip(f"torch cannot multiply in {dtype} on this processor: {number}")
    assert done.returncode == 0, done.stderr


def in_child(
    code: str, folder: Path, dtype: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, str(folder), dtype]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env=env)
