"""Workers side by side, and what they read in order.

A thread of this process stands for each worker and waits for it. A worker may be lost at any
moment: its run is then read by the next that is started in its place.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Protocol

from headscope.errors import CannotStudy, WorkerLost
from headscope.study.reader import Answer, Run
from headscope.units import PATIENCE

ATTEMPTS = 5  # workers that may be lost over one run
IN_HAND = 2  # runs under way beside one for each worker, so that none waits


class Worker(Protocol):
    """Somebody with the model, who reads one run at a time."""

    def ask(self, run: Run) -> Answer:
        """Have a run read; raises `WorkerLost`, or whatever reading it has raised."""
        ...

    def end(self) -> None:
        """End the worker, wherever it is."""
        ...


class Pool:
    """So many workers, replaced when they are lost."""

    def __init__(self, workers: int, start: Callable[[int], Worker]):
        self.workers, self._start = workers, start
        self._seats: SimpleQueue[int] = SimpleQueue()
        self._sitting: dict[int, Worker] = {}
        self._ended = threading.Event()
        for seat in range(workers):
            self._seats.put(seat)

    def in_order(
        self, runs: Iterator[Run], stopped: Callable[[], bool]
    ) -> Generator[tuple[Run, Answer], None, None]:
        """What the runs have shown, in their order; when stopped, only what is there already."""
        under_way: deque[tuple[Run, Future[Answer]]] = deque()
        threads = ThreadPoolExecutor(self.workers, "headscope-workers")
        try:
            while True:
                while len(under_way) < self.workers + IN_HAND:
                    run = next(runs, None)
                    if run is None:
                        break
                    under_way.append((run, threads.submit(self._read, run)))
                if not under_way:
                    return
                run, answer = under_way.popleft()
                while not wait([answer], PATIENCE).done:
                    if stopped():
                        return
                yield run, answer.result()
        finally:
            self._ended.set()
            for worker in list(self._sitting.values()):
                worker.end()
            threads.shutdown(cancel_futures=True)

    def _read(self, run: Run) -> Answer:
        seat = self._seats.get()
        try:
            for _ in range(ATTEMPTS):
                if self._ended.is_set():
                    raise CancelledError
                try:
                    if seat not in self._sitting:
                        self._sitting[seat] = self._start(seat)
                    return self._sitting[seat].ask(run)
                except WorkerLost as error:
                    lost = error
                    if seat in self._sitting:
                        self._sitting.pop(seat).end()
        finally:
            self._seats.put(seat)
        raise CannotStudy(_too_often(run, lost))


def _too_often(run: Run, lost: WorkerLost) -> str:
    unit = next((unit for chunk in run.chunks for unit in chunk.units), None)
    line = "" if unit is None or unit.line is None else f", line {unit.line}"
    where = "the end of the corpus" if unit is None else f"{unit.source}{line}"
    return (
        f"{ATTEMPTS} workers in turn were lost over the same documents (from {where} on); the last "
        f"{lost}. There may be too little memory for so many: take fewer workers. The same command "
        "then goes on from what was saved."
    )
