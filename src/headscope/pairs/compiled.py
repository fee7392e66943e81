"""How the numba functions of this folder are compiled: without the interpreter lock, kept on disk.

`exact` keeps every rounding as written, for whatever is compared; `fast` lets sums be reordered
into vectors, for whatever is only added up. Both give the same bits on every run.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """Compile a function that compares values."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def fast(function: F) -> F:
    """Compile a function that adds up finite values."""
    flags = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}
    return cast(F, numba.njit(cache=True, nogil=True, fastmath=flags)(function))
