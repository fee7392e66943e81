"""Workers as processes of this machine, one a device or several on its cores.

Each is a new Python that runs `worker.main`, not a copy of this process: a copy of a process that
has used CUDA, or threads, does not work, and a copy by name would run the caller's script again.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, Any, cast

from headscope.engines import threads_of
from headscope.engines.pool import Pool, place_of
from headscope.engines.worker import packed_job
from headscope.errors import CannotStudy, WorkerLost
from headscope.study.reader import Answer, Job, Run
from headscope.units import Item, Units, in_turn

BEGIN = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main()"
)
PIPE = 2**20  # bytes that are on their way at once, where a system allows it
MANY = 8  # workers, from which on each is given whole stretches


class Processes:
    """So many processes, the model in each."""

    def __init__(self, workers: int, threads: int | None = None, devices: tuple[str, ...] = ()):
        self.workers, self.devices = workers, devices or ("cpu",)
        cuda = any(device.startswith("cuda") for device in self.devices)
        self.threads = threads_of(threads, workers, cuda)
        self.stretches = workers >= MANY

    def through(self, read: Callable[[Item], Units], items: Iterator[Item]) -> Iterator[Units]:
        """See `study.reader.Engine`."""
        return in_turn(read, items)

    def read(
        self, job: Job, runs: Iterator[Run], stopped: Callable[[], bool]
    ) -> Generator[tuple[Run, Answer], None, None]:
        """See `study.reader.Engine`."""
        data = packed_job(job)

        def start(seat: int) -> Process:
            device = self.devices[seat % len(self.devices)]
            return Process("headscope.engines.worker", (data, device), job.threads)

        yield from Pool(self.workers, start, first_of).in_order(runs, stopped)


def first_of(run: Run) -> str:
    """What stands first in a run."""
    unit = next((unit for chunk in run.chunks for unit in chunk.units), None)
    return "the end of the corpus" if unit is None else place_of(unit)


def can_start() -> bool:
    """Whether this is a Python that another can be started like."""
    return "python" in Path(sys.executable or "").name.lower()


def widen(pipe: IO[bytes]) -> None:
    """Let more be on its way: who reads in small pieces waits for each, and lets others wait."""
    if sys.platform == "linux":
        from fcntl import F_SETPIPE_SZ, fcntl

        with contextlib.suppress(OSError):  # a system has a limit for all of one user's
            fcntl(pipe, F_SETPIPE_SZ, PIPE)


class Process:
    """A program of ours, by its module and what it is told first, and the pipes to it."""

    def __init__(self, program: str, told: Any, threads: int):
        if not can_start():
            raise CannotStudy(
                "Other processes need a Python that can be started; read in this one (the engine "
                "'local', no readers)."
            )
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, json.dumps(sys.path), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | counts,
            bufsize=PIPE,
            start_new_session=True,  # Ctrl-C is for the process that adds up
        )
        widen(cast(IO[bytes], self.process.stdout))
        self.told, self._begun = told, False

    def begin(self) -> None:
        """Tell it what it is for."""
        try:
            self._say(self.told)
            self._answer()
        except BaseException:
            self.end()
            raise

    def ask(self, asked: Any) -> Any:
        """Have something read."""
        if not self._begun:
            self.begin()
            self._begun = True
        self._say(asked)
        return self._answer()

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], pipe).close()

    def _say(self, what: Any) -> None:
        pipe = cast(IO[bytes], self.process.stdin)
        try:
            pickle.dump(what, pipe, 5)
            pipe.flush()
        except (OSError, ValueError) as error:
            raise self._lost() from error

    def _answer(self) -> Any:
        try:
            said, error = pickle.load(cast(IO[bytes], self.process.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as lost:
            raise self._lost() from lost
        if error is not None:
            raise error
        return said

    def _lost(self) -> WorkerLost:
        self.process.kill()
        code = self.process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return WorkerLost(f"ended {how}")
