"""Readers: processes without a model, which turn documents into units ahead of it.

Sentences, words and tokens are found in Python, a thread at a time, and a GPU is faster than that.
So a reader also prepares what a study will ask of a unit that depends on the text alone.
"""

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from headscope.engines.pool import Pool, place_of
from headscope.engines.processes import Process, can_start
from headscope.engines.reader import Read, blocks
from headscope.errors import CannotStudy, NotPrepared, WorkerLost
from headscope.study.reader import Prepare
from headscope.units import Item, Units, in_turn

PROGRAM = "headscope.engines.reader"
FOR_A_DEVICE = 6  # readers, beside a GPU
DOCUMENTS, CHARACTERS = 64, 2**16  # of a block: so few, since somebody waits for the first
MOST = 4096


class Readers:
    """So many readers, which begin to begin at once: it takes them seconds."""

    def __init__(self, number: int):
        self.number = number
        self._begun: list[_Reader | None] = [_Reader(PROGRAM, b"", 1) for _ in range(number)]
        self._pool: Pool[list[Item]] | None = None

    def through(self, read: Read, items: Iterator[Item], prepare: Prepare) -> Iterator[Units]:
        """Units of documents, in order; read here where a tokenizer cannot be sent."""
        try:
            told = pickle.dumps((read, prepare), 5)
        except (pickle.PicklingError, AttributeError, TypeError):
            self.end()
            yield from in_turn(read, items)
            return
        taken, begun = list[Item](), False

        def noted() -> Iterator[Item]:
            for item in items:
                if not begun:
                    taken.append(item)
                yield item

        def start(seat: int) -> Process:
            there, self._begun[seat] = self._begun[seat], None
            reader = there or _Reader(PROGRAM, b"", 1)
            reader.told = told
            return reader

        if self._pool is not None:
            self._pool.end()
        self._pool = Pool(self.number, start, _first_of, "readers", self.number)
        try:
            for _, found in self._pool.in_order(blocks(noted(), DOCUMENTS, CHARACTERS)):
                begun = True
                taken.clear()
                yield from found
        except NotPrepared:
            if begun:
                raise
            yield from in_turn(read, chain(taken, items))
        finally:
            self.end()

    def end(self) -> None:
        """End all readers."""
        if self._pool is not None:
            self._pool.end()
        for seat, reader in enumerate(self._begun):
            if reader is not None:
                reader.end()
                self._begun[seat] = None


class _Reader(Process):
    def begin(self) -> None:
        """Tell it how to read."""
        try:
            super().begin()
        except WorkerLost:
            raise
        except Exception as error:
            raise NotPrepared(
                f"A reader could not load what it was to read with ({error}). With readers=0 "
                "(--readers 0) documents are read in this process."
            ) from error


@contextmanager
def readers_of(asked: int | None, devices: Sequence[str]) -> Iterator[Readers | None]:
    """As many as were asked for, else so many for each GPU of some devices; None for none."""
    if asked is not None and not 0 <= asked <= MOST:
        raise CannotStudy(f"readers has to be a number from 0 to {MOST:,}, not {asked}.")
    number = asked
    if number is None:
        cuda = {device for device in devices if device.startswith("cuda")}
        number = min(FOR_A_DEVICE * len(cuda), _processors() - 1) if can_start() else 0
    found = Readers(number) if number > 0 else None
    try:
        yield found
    finally:
        if found is not None:
            found.end()


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _first_of(block: list[Item]) -> str:
    return place_of(block[0][1])
