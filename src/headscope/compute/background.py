"""Work in a thread of its own, in order and a little behind: sums, while the model reads on."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

MOST = 2  # calls under way, so that what they hold stays little


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
