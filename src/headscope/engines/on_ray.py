"""Workers as actors of Ray: on this machine without any set-up, or on a cluster by its address.

An actor loads the model once, from the object store. On a cluster every machine needs headscope in
the same version; whether an actor has a GPU follows from where the model is in this process.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from headscope.documents import PART
from headscope.engines import threads_of
from headscope.engines.pool import Pool
from headscope.engines.processes import MANY, first_of
from headscope.engines.reader import blocks, read_block
from headscope.engines.serving import answered
from headscope.engines.worker import packed_job, reader_of
from headscope.errors import CannotStudy, WorkerLost
from headscope.study.reader import Answer, Job, Run
from headscope.units import Item, Units, in_turn

BLOCK = 256  # documents that are tokenised by one task
MANY_GPUS = 3  # more than one thread tokenises for
PATIENCE = 10  # seconds for somebody at an address to answer


class Ray:
    """So many actors of Ray, at an address or here."""

    devices: tuple[str, ...] = ()  # which Ray finds by itself

    def __init__(self, workers: int, threads: int | None = None, address: str | None = None):
        self.workers, self.address = workers, address
        self.threads = threads_of(threads, workers, cuda=False)
        self.stretches = workers >= MANY
        self._feeds_many = self.stretches
        _imported()

    def read(
        self, job: Job, runs: Iterator[Run], stopped: Callable[[], bool]
    ) -> Generator[tuple[Run, Answer], None, None]:
        """See `study.reader.Engine`."""
        ray = _imported()
        with self._connected(ray):
            data = ray.put(packed_job(job))
            cuda = job.loaded.model.device.type == "cuda"
            self._feeds_many = self.workers >= (MANY_GPUS if cuda else MANY)
            actor = ray.remote(num_cpus=job.threads, num_gpus=int(cuda))(Actor)

            def start(seat: int) -> "OfRay":
                return OfRay(ray, actor.remote(data, "cuda" if cuda else "cpu"))

            yield from Pool(self.workers, start, first_of).in_order(runs, stopped)

    def through(self, read: Callable[[Item], Units], items: Iterator[Item]) -> Iterator[Units]:
        """Tokenise in this process for a few workers, and on Ray for many."""
        return (self._tokenised if self._feeds_many else in_turn)(read, items)

    def _tokenised(self, read: Callable[[Item], Units], items: Iterator[Item]) -> Iterator[Units]:
        """Have documents tokenised all over the cluster, and take their units in order.

        Not by a data set of Ray's, which has no source that this process feeds, and no place for
        what cannot be read: documents come from one place, in one order, whoever reads them.
        """
        ray = _imported()
        # Without a share of the processors, so that they find room beside the actors.
        task = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(read_block)
        reading, under_way = ray.put(read), deque[Any]()
        for some in blocks(items, BLOCK, PART):
            under_way.append(task.remote(reading, some))
            if len(under_way) >= 2 * self.workers:
                yield from ray.get(under_way.popleft())
        for rest in under_way:
            yield from ray.get(rest)

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        """Use the Ray that the caller has, or one of our own for as long as it is needed."""
        if ray.is_initialized():
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or it reports to its makers
        try:
            if self.address:
                _reach(self.address)
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
            else:
                ray.init(
                    num_cpus=self.workers * self.threads,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                )
        except (OSError, ValueError, RuntimeError) as error:
            raise CannotStudy(
                f"Ray cannot be reached or started at {self.address or 'this machine'!r} "
                f"({str(error).splitlines()[0][:200]})."
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


class Actor:
    """What runs on Ray."""

    def __init__(self, data: bytes, device: str):
        self.reader = reader_of(data, device)

    def read(self, run: Run) -> tuple[Answer | None, Exception | None]:
        """Read a run."""
        return answered(self.reader.answer, run)


class OfRay:
    """An actor, as the pool knows it."""

    def __init__(self, ray: Any, actor: Any):
        self._ray, self.actor = ray, actor

    def ask(self, run: Run) -> Answer:
        """Have a run read."""
        errors = self._ray.exceptions
        try:
            said, error = self._ray.get(self.actor.read.remote(run))
        except (errors.RayActorError, errors.ObjectLostError, errors.OutOfMemoryError) as lost:
            reason = (str(lost).strip().splitlines() or ["without a word"])[0]
            raise WorkerLost(f"ended: {reason[:200]}") from lost
        if error is not None:
            raise error
        return cast(Answer, said)

    def end(self) -> None:
        """Kill the actor."""
        self._ray.kill(self.actor)


def _reach(address: str) -> None:
    """Raise where nobody answers; Ray itself would ask for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise CannotStudy(
            "The engine 'ray' needs one more package: pip install 'headscope[ray]'. Without it, "
            "--workers (workers= in Python) uses the cores or GPUs of this machine."
        ) from None
    return ray
