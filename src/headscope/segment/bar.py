"""A progress bar on standard error, for texts that take a while."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any


def bar(what: str, total: int, shown: bool) -> Any:
    """A context that gives what to call with how many more are done; nothing unless shown."""
    if not shown:
        return nullcontext(None)
    from rich.console import Console
    from rich.progress import Progress

    class Bar(Progress):
        def __enter__(self) -> Callable[[int], None]:  # type: ignore[override]
            super().__enter__()
            task = self.add_task(what, total=total)
            return lambda count: self.advance(task, count)

    return Bar(console=Console(stderr=True), transient=True)
