"""Read chunks of a corpus with a model, in this process or in another that was sent a `Job`.

What a chunk shows is the same wherever it is read: its batches are made from its own units alone,
and torch has as many threads everywhere.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from headscope.compute.background import Behind
from headscope.models import LoadedModel
from headscope.observed import ObservedModel
from headscope.pairs.cuda import MEMORY
from headscope.study.ballots import Ballots, cast
from headscope.study.checkpoint import Packed, packed, unpack, unpack_types
from headscope.study.modes import Mode
from headscope.study.observe import Observer
from headscope.study.parameters import Parameters
from headscope.study.sums import STRETCH, Chunked, Totals
from headscope.units import Chunk, Item, Padding, Unit, Units, batches


@dataclass(frozen=True, slots=True)
class Run:
    """Chunks that follow each other and are read by one worker: one, or a stretch from its start.

    A stretch comes back added up; a single chunk as it was seen, to be added where it belongs.
    """

    chunks: Sequence[Chunk]
    stretch: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """What somebody needs to know to read chunks of a study."""

    loaded: LoadedModel
    silenced: frozenset[tuple[int, int]]
    parameters: Parameters
    padding: Padding
    batch_tokens: int
    threads: int  # of torch
    memory: float = MEMORY  # GiB that statistics may need on a device


CHUNK_BATCHES = 8  # full batches in a chunk, so that its classes of lengths fill theirs
Answer = tuple[Packed, Packed]  # of `checkpoint.packed`
Prepare = Callable[[Sequence[Unit]], None]  # has units remember what a study will ask of them


class Engine(Protocol):
    """Where chunks are read, if not in this process."""

    stretches: bool  # whether a worker is given a whole stretch at a time
    threads: int  # of torch, for each worker
    devices: tuple[str, ...]  # that workers are on, where an engine is told

    def through(self, read: Callable[[Item], Units], items: Iterator[Item]) -> Iterator[Units]:
        """Where documents become units, in their order; while runs are being read."""
        ...

    def read(
        self, job: Job, runs: Iterator[Run], stopped: Callable[[], bool]
    ) -> Generator[tuple[Run, Answer], None, None]:
        """What some runs have shown, in their order; ends early where it is stopped."""
        ...


class Readers(Protocol):
    """Processes without a model, where documents become units that are prepared for one."""

    def through(
        self,
        read: Callable[[Item], Units],
        items: Iterator[Item],
        prepare: Prepare,
    ) -> Iterator[Units]:
        """Units of documents, in their order; those read elsewhere are prepared."""
        ...


class Reader:
    """Reads units, with the model of a job."""

    def __init__(self, job: Job):
        self.job = job
        parameters = job.parameters
        self.scope = ObservedModel(job.loaded, job.silenced)
        self.observer = Observer(
            self.scope,
            parameters.kinds,
            parameters.rules,
            parameters.seed,
            job.padding,
            job.memory,
        )
        self.vocabulary = vocabulary_of(self.scope.tokenizer)

    def steps(
        self, units: Sequence[Unit], to: Chunked, behind: Behind, done: int = 0
    ) -> Iterator[list[Unit]]:
        """Read the units of a chunk, in batches; yields those of each. The first were `done`."""
        groups = batches(units, self.job.batch_tokens, self.job.padding)
        steps = read_chunk(
            units, groups, ("real",), self.observer, self.vocabulary, behind, to, done
        )
        for _, read in steps:
            yield read

    def answer(self, run: Run) -> Answer:
        """What a run shows, to be sent back."""
        totals, chunk, ballots = totals_of(self.job.parameters), Chunked(0), Ballots()
        with self.observer.behind() as behind:
            for one in run.chunks:
                chunk = Chunked(len(one.units))
                for _ in self.steps(one.units, chunk, behind):
                    pass
                if run.stretch and one.units:
                    behind(totals.close, one.units, chunk, self.vocabulary)
                    cast(ballots, one.units, self.vocabulary)
            behind.wait()
        arrays, said = packed(totals, Chunked(0) if run.stretch else chunk)
        return arrays, said | {"ballots": ballots}


def add(answer: Answer, run: Run, to: Totals, vocabulary: int) -> None:
    """Add what came back of a run."""
    arrays, said = answer
    totals, chunk = Totals(to.replicates, to.seed), Chunked(0)
    unpack(arrays, said, totals, chunk)
    if run.stretch:
        to.follow(totals, unpack_types(arrays, said, "types"), said["ballots"])
    elif chunk.units:
        chunk.counted = unpack_types(arrays, said, "chunk types")
        to.close(run.chunks[0].units, chunk, vocabulary)


def read_chunk(
    units: Sequence[Unit],
    groups: Iterable[Sequence[int]],
    modes: Sequence[Mode],
    observer: Observer,
    vocabulary: int,
    behind: Behind,
    to: Chunked,
    done: int = 0,
) -> Iterator[tuple[Mode, list[Unit]]]:
    """Observe a chunk in every mode, in groups of places; yields each step taken.

    The first `done` steps were taken before, and what they gave is there already.
    """
    steps = [(places, mode) for places in groups for mode in modes]
    for places, mode in steps[done:]:
        own = [units[place] for place in places]
        behind(to.take, vocabulary, mode, places, observer.start(own, mode))
        yield mode, own


def totals_of(parameters: Parameters) -> Totals:
    """Sums of nothing, as a study with these parameters begins."""
    return Totals(parameters.replicates, parameters.seed, group=parameters.group, stretch=STRETCH)


def vocabulary_of(tokenizer: Any) -> int:
    """Places for types; more tokens than the model's own vocabulary may have been added."""
    return max(len(tokenizer), int(tokenizer.vocab_size))


@contextmanager
def so_many_threads(number: int) -> Iterator[None]:
    """Let torch have so many threads for a while: it rounds by their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
