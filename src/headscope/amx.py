"""AMX, the matrix tiles of some Intel processors, where a program may not use what it is shown.

Some virtual machines advertise AMX and end the program that believes them: a product of torch in
16 bits is an illegal instruction there. So a child process tries before torch does, and where it
fails torch's library for such products, oneDNN, is told to do without. Run as a file, this is the
child; it needs nothing but the standard library.
"""

import os
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")  # a person's own setting is theirs
ALL_BUT_AMX = "AVX512_CORE_FP16"

ARCH_PRCTL, ASK_FOR, TILES = 158, 0x1023, 18  # Linux on x86-64; see arch/x86/xstate.rst there
PR_SET_DUMPABLE = 4
# ldtilecfg [rdi]; tilezero tmm0; tilerelease; ret
CODE = bytes.fromhex("c4e2784907 c4e27b49c0 c4e27849c0 c3")
CONFIGURATION = bytes([1, *[0] * 15, 64, *[0] * 31, 16, *[0] * 15])  # one tile, 16 rows of 64 bytes


def spare_torch(
    environ: MutableMapping[str, str] = os.environ,
    cpuinfo: Path = CPUINFO,
    works: Callable[[], bool] | None = None,
) -> None:
    """Limit oneDNN where the processor advertises AMX that does not work, unless it is limited."""
    if any(name in environ for name in LIMITS) or not _advertised(cpuinfo):
        return
    if not (works or tiles_work)():
        environ[LIMITS[0]] = ALL_BUT_AMX


def tiles_work() -> bool:
    """Whether a child process lives through one tile."""
    import subprocess

    if "python" not in Path(sys.executable or "").name.lower():
        return _allowed()  # inside another program, which is what would be started
    command = [sys.executable, "-I", "-S", __file__]
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _advertised(cpuinfo: Path) -> bool:
    import platform

    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 2**32:
        return False
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return "amx_tile" in flags.split()


def _allowed() -> bool:
    """Ask the kernel to let this process use tiles."""
    import ctypes

    libc = ctypes.CDLL(None)
    return bool(libc.syscall(*map(ctypes.c_long, (ARCH_PRCTL, ASK_FOR, TILES))) == 0)


def _use_a_tile() -> None:
    """End this process, in one way or another, if tiles do not work."""
    import ctypes
    import mmap

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)  # no core file is to be left behind
    if not _allowed():
        sys.exit("the kernel does not allow it")
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that lets nobody make code: the kernel's word has to do
        return
    page.write(CODE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(None, ctypes.c_char_p)(start)(CONFIGURATION)


if __name__ == "__main__":
    _use_a_tile()
