"""How numba functions are compiled: without the interpreter lock, kept on disk.

`exact` keeps every rounding as written, for whatever is compared; `fast` lets sums be reordered
into vectors, for whatever is only added up. Both give the same bits on every run. Compiled code is
kept by what all sources say, since numba itself does not see a change in what a function calls.
"""

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent.parent
SOURCES = ("attention", "compute", "measures", "pairs", "segment")
"""The folders of compiled functions, and of the constants and functions that get into them."""
UNUSED = 30 * 24 * 3600  # seconds after which code that nobody asked for is removed


def exact(function: F) -> F:
    """Compile a function that compares values."""
    return _compiled(function)


def fast(function: F) -> F:
    """Compile a function that adds up finite values.

    Always into its caller: compiled apart as well, there would be two of it that add up in another
    order, and which one is run would depend on whether code is fresh or was kept.
    """
    flags = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}
    return _compiled(function, fastmath=flags, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    if _KEPT is None:
        return cast(F, numba.njit(nogil=True, **options)(function))
    with _DECORATING:
        # Read when a function is decorated, and nobody else's after that.
        before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, str(_KEPT)
        try:
            return cast(F, numba.njit(cache=True, nogil=True, **options)(function))
        finally:
            _CONFIG.CACHE_DIR = before


def _kept() -> Path | None:
    """The folder for what these sources compile to; None where nothing can be written."""
    from platformdirs import user_cache_path

    chosen = _CONFIG.CACHE_DIR
    root = Path(chosen) / "headscope" if chosen else user_cache_path("headscope") / "compiled"
    try:
        folder = root / _digest()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
    except OSError:
        return None
    _remove_unused(root)
    return folder


def _digest() -> str:
    found = sha256()
    for part in SOURCES:
        for file in sorted((PACKAGE / part).rglob("*.py")):
            found.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0")
            found.update(sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def _remove_unused(root: Path) -> None:
    with suppress(OSError):  # another process may be doing the same
        for other in root.iterdir():
            named_by_us = re.fullmatch("[0-9a-f]{16}", other.name) and not other.is_symlink()
            if named_by_us and time.time() - other.stat().st_mtime > UNUSED:
                shutil.rmtree(other, ignore_errors=True)


_CONFIG: Any = numba.config
_KEPT = _kept()
_DECORATING = threading.Lock()
