"""Workers side by side, and what they read in order.

A thread of this process stands for each worker and waits for it. A worker may be lost at any
moment: what it was to read is then read by the next that is started in its place.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from itertools import islice
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from headscope.documents import Document, Skipped
from headscope.errors import CannotStudy, WorkerLost
from headscope.units import PATIENCE, Unit

Asked = TypeVar("Asked")

ATTEMPTS = 5  # workers that may be lost over the same documents
IN_HAND = 2  # under way beside one for each worker, so that none waits


class Worker(Protocol):
    """Somebody who reads one thing at a time."""

    def ask(self, asked: Any) -> Any:
        """Have something read; raises `WorkerLost`, or whatever reading it has raised."""
        ...

    def end(self) -> None:
        """End the worker, wherever it is."""
        ...


def place_of(found: Unit | Document | Skipped) -> str:
    """Where something was met, for messages."""
    return found.source if found.line is None else f"{found.source}, line {found.line}"


class Pool(Generic[Asked]):
    """So many workers, replaced when they are lost.

    where: what stands first in something to read, for messages; called: what these workers are.
    """

    def __init__(
        self,
        workers: int,
        start: Callable[[int], Worker],
        where: Callable[[Asked], str],
        called: str = "workers",
        in_hand: int = IN_HAND,
    ):
        self.workers, self._start, self._where = workers, start, where
        self._called, self._in_hand = called, in_hand
        self._seats: SimpleQueue[int] = SimpleQueue()
        self._sitting: dict[int, Worker] = {}
        self._ended = threading.Event()
        for seat in range(workers):
            self._seats.put(seat)

    def in_order(
        self, items: Iterator[Asked], stopped: Callable[[], bool] = lambda: False
    ) -> Generator[tuple[Asked, Any], None, None]:
        """What was read of the items, in order; when stopped, only what is there already."""
        under_way: deque[tuple[Asked, Future[Any]]] = deque()
        threads = ThreadPoolExecutor(self.workers, f"headscope-{self._called}")
        try:
            while True:
                for item in islice(items, self.workers + self._in_hand - len(under_way)):
                    under_way.append((item, threads.submit(self._read, item)))
                    if under_way[0][1].done():  # while the items were slow to come
                        break
                if not under_way:
                    return
                item, answer = under_way.popleft()
                while not wait([answer], PATIENCE).done:
                    if stopped():
                        return
                yield item, answer.result()
        finally:
            self.end()
            threads.shutdown(cancel_futures=True)

    def end(self) -> None:
        """End all workers; who waits for one is told that it was cancelled."""
        self._ended.set()
        for worker in list(self._sitting.values()):
            worker.end()

    def _read(self, item: Asked) -> Any:
        seat = self._seats.get()
        try:
            for _ in range(ATTEMPTS):
                if self._ended.is_set():
                    raise CancelledError
                try:
                    if seat not in self._sitting:
                        self._sitting[seat] = self._start(seat)
                    if self._ended.is_set():  # while it was started
                        self._sitting.pop(seat).end()
                        raise CancelledError
                    return self._sitting[seat].ask(item)
                except WorkerLost as error:
                    lost = error
                    if seat in self._sitting:
                        self._sitting.pop(seat).end()
        finally:
            self._seats.put(seat)
        raise CannotStudy(
            f"{ATTEMPTS} {self._called} in turn were lost over the same documents (from "
            f"{self._where(item)} on); the last {lost}. There may be too little memory for so "
            f"many: take fewer {self._called}. The same command then goes on from what was saved."
        )
