"""Progress on standard error, for texts that take a while: a bar, or lines where it is a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 10  # lines, at most, for the whole of it


@contextmanager
def progress_bar(what: str, total: int, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """A context that gives what to call with how many more are done; nothing unless shown."""
    if not shown:
        yield None
        return
    from rich.progress import Progress

    from headscope.terminal import Terminal

    console, done = Terminal(stderr=True), 0
    if console.is_terminal:
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield lambda count: progress.advance(task, count)
        return

    def say(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if done * EVERY // total > before * EVERY // total:
            console.print(f"{what}: {done} of {total}", highlight=False)

    yield say
