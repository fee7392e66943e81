"""Statistics under way: a function that starts them returns another that waits for the result.

A device works on while the host goes on to the next layer; a CPU has its result at once.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def at_once(start: Callable[P, Callable[[], T]]) -> Callable[P, T]:
    """The same function, waiting for the result."""

    @wraps(start)
    def wait(*given: P.args, **options: P.kwargs) -> T:
        return start(*given, **options)()

    return wait


def done(result: T) -> Callable[[], T]:
    """A result that is there already."""
    return lambda: result
