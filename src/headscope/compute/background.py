"""Work in order and a little behind, while the model reads on: sums.

Beside a CPU, which works all the time, in a thread of its own. Beside a device two threads would
only take the interpreter from each other, thousands of times a batch: there each call waits until
the next one is made, and the device has been given enough to do.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, TypeAlias

MOST = 2  # calls under way, so that what they hold stays little
LATE = 1  # calls that wait for the next one


class Background:
    """Calls functions one after the other, and waits only where too many are under way."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "headscope-sums")
        self._under_way: deque[Future[None]] = deque()

    def __call__(self, function: Callable[..., None], *given: Any) -> None:
        """Call a function when those before it are done; raises what one of them raised."""
        while len(self._under_way) >= MOST:
            self._under_way.popleft().result()
        self._under_way.append(self._pool.submit(function, *given))

    def wait(self) -> None:
        """Wait until everything is done."""
        while self._under_way:
            self._under_way.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failed: object) -> None:
        self._pool.shutdown(cancel_futures=failed[0] is not None)


class Later:
    """Calls functions one after the other, each when the next one is asked for."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def __call__(self, function: Callable[..., None], *given: Any) -> None:
        """Call a function when the next one comes, and what waits now."""
        self._waiting.append(partial(function, *given))
        while len(self._waiting) > LATE:
            self._waiting.popleft()()

    def wait(self) -> None:
        """Call all that wait."""
        while self._waiting:
            self._waiting.popleft()()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failed: object) -> None:
        self._waiting.clear()


Behind: TypeAlias = Background | Later


@contextmanager
def garbage_of_before_left() -> Iterator[None]:
    """Have Python's collector pass over all that is there already: a million objects of libraries.

    It would go through them again and again while a device waits.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
