"""A corpus of many chunks, what studies of it are compared by, and an engine in this process."""

from collections.abc import Iterator
from pathlib import Path

import headscope as hs
from headscope.pairs import quantile
from headscope.study.reader import Job, Reader, Run
from headscope.units import in_turn

LINES = [line.strip() for line in hs.sample_text().split("\n") if len(line) > 60]
DOCUMENTS = [*LINES, " ", *(f"{a} {b}" for a in LINES for b in LINES[:3])]
OPTIONS = {
    "rule": quantile(0.05),
    "replicates": 8,
    "window": 40,
    "readings": ("raw",),
    "nulls": ("shuffle",),
    "threads": 1,
}


def digests(made: hs.Study) -> dict[str, str]:
    """What says that two studies have the same bytes in every table."""
    return {name: entry.sha256 for name, entry in made.manifest.tables.items()}


def corpus_of(folder: Path, times: int) -> Path:
    """A file with a document a line."""
    file = folder / "corpus.txt"
    file.write_text("\n".join(f"{line} Number {n}." for n in range(times) for line in LINES))
    return file


class Beside:
    """An engine whose one worker is a reader in this process."""

    threads = 1
    through = staticmethod(in_turn)

    def __init__(self, stretches: bool):
        self.stretches = stretches
        self.runs: list[Run] = []

    def read(self, job: Job, runs: Iterator[Run], stopped):
        reader = Reader(job)
        for run in runs:
            self.runs.append(run)
            yield run, reader.answer(run)
