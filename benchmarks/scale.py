"""What more workers bring, what states cost, and from both what a very large corpus would take.

    python benchmarks/scale.py engines [--megabytes 0.025] [--rounds 2]

studies the same text with the specimen in this process with two threads, in this process with one,
with one and two processes and with two actors of Ray, in turn, and prints
seconds by the clock and of processors (those of all workers too, and of their start), what passes
until the first chunk is added, and tokens a second of the whole.

    python benchmarks/scale.py steady [--megabytes 0.025] [--rounds 2]

does it with as much text and with five times as much, and prints what a token more takes of all
processors: without the start of workers, and whatever else the machine does.

    python benchmarks/scale.py states [--states 1000]

makes so many states of a study of BERT-base shape, as workers hand them in for 64 chunks each, and
adds them up as a study does, in the order of the corpus, and as Ray's actors would in a tree.

    python benchmarks/scale.py read [--megabytes 20]

measures what one thread reads and tokenises, and what a window weighs when it is sent to a worker.
"""

import argparse
import os
import pickle
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

import headscope as hs
from headscope.corpus import Corpus
from headscope.measures.type_counts import JOINED, TypeCounts
from headscope.study.checkpoint import packed
from headscope.study.progress import Quiet
from headscope.study.reader import Run, add
from headscope.study.sums import STRETCH, Chunked, Key, Totals
from headscope.units import chunks

LAYERS, HEADS, VOCABULARY, REPLICATES, BINS = 12, 12, 30_522, 200, 120
VIEWS = [(reading, special) for reading in ("raw", "cosine") for special in ("kept", "left_out")]
RULE = "quantile(0.01)"
BATCH = 2**7  # tokens, fewer than a study's own, so that there are chunks enough for everybody
WHOLE = Run((), stretch=True)
OCCURRING = 0.9  # of the vocabulary, in a million tokens and more
NUMBERS = 33  # of a head in a view, without distances; of focus as many again, once


class Timed(Quiet):
    """When the first and the last chunk were added, and what processors had done by then."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def advance(self, units) -> None:
        self.seen.append((time.perf_counter(), processor_time()))


def processor_time() -> float:
    """Seconds of processors, of this process and all that it has started."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total


class Taken(NamedTuple):
    """What one study took."""

    whole: float  # seconds
    first: float  # seconds until the first chunk was added
    processors: float  # seconds, until the last chunk was added
    tokens: int
    threads: int
    digest: str


WAYS: dict[str, dict[str, Any]] = {
    "here, 2 threads": {"threads": 2},
    "here, 1 thread": {"threads": 1},
    "1 process": {"workers": 1},
    "2 processes": {"workers": 2},
    "Ray, 2 actors": {"engine": "ray", "workers": 2},
}


def studied(scope: hs.Scope, way: dict[str, Any], megabytes: float) -> Taken:
    """Read as much text in one of the ways."""
    text = hs.sample_text().replace("\n", " ")
    lines = [f"{n} {text}" for n in range(max(1, int(megabytes * 1e6 / len(text))))]
    watch, begun, used = Timed(), time.perf_counter(), processor_time()
    with tempfile.TemporaryDirectory() as folder:
        options = {"nulls": (), "progress": watch, "batch_tokens": BATCH}
        made = scope.study(lines, folder, **options, **way)  # type: ignore[arg-type]
        whole, said = time.perf_counter() - begun, made.manifest
        digest = "".join(one.sha256 for one in said.tables.values())
    # Answers come in bursts, so a speed between two of them says nothing.
    first, last = watch.seen[0], watch.seen[-1]
    return Taken(whole, first[0] - begun, last[1] - used, said.corpus.tokens, said.threads, digest)


def engines(megabytes: float, rounds: int, only: str) -> None:
    """Every way of reading the same corpus, in turn."""
    scope = hs.load(device="cpu")
    found: dict[str, list[Taken]] = {name: [] for name in WAYS if only in name}
    bytes_of: dict[str, set[str]] = {}
    for _ in range(rounds):
        for name, all_taken in found.items():
            taken = studied(scope, WAYS[name], megabytes)
            bytes_of.setdefault(f"{taken.threads} threads", set()).add(taken.digest)
            all_taken.append(taken)
            print(name, [round(number, 1) for number in taken[:3]], flush=True)
    print(f"specimen, {taken.tokens:,} tokens, medians of {rounds}")
    print("| | whole, s | to the first chunk, s | processors to the last, s | tokens/s of all |")
    print("|---|---|---|---|---|")
    for name, all_taken in found.items():
        middle = [statistics.median(column) for column in list(zip(*all_taken, strict=True))[:3]]
        speed = taken.tokens / middle[0]
        print(f"| {name} | {' | '.join(f'{number:,.0f}' for number in (*middle, speed))} |")
    for name, digests in bytes_of.items():
        print(f"{name}: {len(digests)} different results")


def steady(megabytes: float, rounds: int, only: str) -> None:
    """What a token takes once workers have begun: a study five times as large, less a small one.

    In seconds of processors, of all processes together, which say something on a busy machine too.
    """
    scope = hs.load(device="cpu")
    found: dict[str, list[float]] = {name: [] for name in WAYS if only in name}
    for _ in range(rounds):
        for name, seconds in found.items():
            small, large = (studied(scope, WAYS[name], size) for size in (megabytes, 5 * megabytes))
            tokens = large.tokens - small.tokens
            seconds.append(1000 * (large.processors - small.processors) / tokens)
            print(name, f"{seconds[-1]:.3f}", flush=True)
    print(f"{tokens:,} tokens more, medians of {rounds}")
    print("| | seconds of processors for 1,000 tokens | tokens a second of a processor |")
    print("|---|---|---|")
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        print(f"| {name} | {middle:.3f} | {1000 / middle:,.0f} |")


def state(random: np.random.Generator) -> Totals:
    """As large as what a stretch of a BERT-base study adds up to, with most of its vocabulary."""
    shape = (REPLICATES + 1, LAYERS, HEADS)
    made = Totals(REPLICATES, 0, chunks=STRETCH, stretch=STRETCH)
    for reading, special in VIEWS:
        for measure, numbers in (("range", 7), ("others", NUMBERS)):
            arrays = {f"{n}": random.integers(0, 2**20, shape) / 2.0**20 for n in range(numbers)}
            made.sums[Key("real", measure, reading, special, RULE)] = arrays
        by_distance = random.integers(0, 2**20, (*shape, BINS)).astype(float)
        made.sums[Key("real", "range", reading, special, RULE)]["by_distance"] = by_distance
        profile = {
            name: by_distance[0].copy() for name in ("high", "chance", "pairs", "similarity")
        }
        made.profiles[Key("real", "range", reading, special, RULE)] = profile
        for kind, size in (("token", VOCABULARY), ("word", VOCABULARY + JOINED)):
            occurrences = random.integers(1, 99, size) * (random.random(size) < OCCURRING)
            ends = random.integers(0, 99, (size, LAYERS, HEADS)) * (occurrences > 0)[:, None, None]
            key = Key("real", kind, reading, special, RULE)
            made.types[key] = TypeCounts(ends, occurrences)
    focus = {f"{n}": random.integers(0, 2**20, shape) / 2.0**20 for n in range(NUMBERS)}
    made.sums[Key("real", "focus")] = focus
    return made


def size(arrays: dict[str, np.ndarray]) -> int:
    """Bytes of named arrays."""
    return sum(array.nbytes for array in arrays.values())


def states(number: int) -> None:
    """Add up states in the order of the corpus, each as it comes from a worker."""
    one = state(np.random.default_rng(0))
    arrays, said = packed(one, Chunked(0))
    print(f"a state: {size(arrays) / 1e6:,.0f} MB, sent as it is; pickled in", end=" ")
    begun = time.perf_counter()
    buffers: list[pickle.PickleBuffer] = []
    sent = pickle.dumps((arrays, said), 5, buffer_callback=buffers.append)
    held = [buffer.raw().toreadonly() for buffer in buffers]  # as the object store gives them
    print(f"{time.perf_counter() - begun:.2f} s")
    del one, arrays, said
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    taken: dict[str, float] = {}

    def timed(name: str, call: Callable[[], object]) -> object:
        begun = time.perf_counter()
        made = call()
        taken[name] = taken.get(name, 0.0) + time.perf_counter() - begun
        return made

    total = Totals(REPLICATES, 0, stretch=STRETCH)
    begun, used = time.perf_counter(), time.process_time()
    for done in range(number):
        if done % 100 == 0:
            print(f"{done} states: {time.process_time() - used:.1f} s of a processor", flush=True)
        arrays, said = timed("received", lambda: pickle.loads(sent, buffers=held))  # type: ignore[misc]
        timed("added", lambda a=arrays, s=said: add((a, s | {"ballots": {}}), WHOLE, total, 0))
    timed("settled", total.settle)
    clock, used = time.perf_counter() - begun, time.process_time() - used
    key = next(iter(total.sums))
    name, value = next(iter(total.sums[key].items()))
    first = pickle.loads(sent, buffers=held)[0][f"sums/{key}/{name}"]
    assert np.array_equal(value, first * number)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{number} states: {clock:.1f} s by the clock, {used:.1f} s of a processor, ", end="")
    print(f"at most {most:.2f} GiB resident, {before:.2f} before the first was added")
    print({name: round(seconds, 1) for name, seconds in taken.items()})


def read(megabytes: float) -> None:
    """What one thread makes of text."""
    scope = hs.load(device="cpu")
    text = hs.sample_text().replace("\n", " ")
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{n} {text}" for n in range(max(1, int(megabytes * 1e6 / len(text))))]
        file = Path(folder) / "corpus.txt"
        file.write_text("\n".join(lines))
        corpus = Corpus(file, "line")
        used = time.process_time()
        documents = sum(1 for _ in corpus)
        plain = time.process_time() - used
        tokens, weighs, cut, handed = 0, 0, 0.0, 0.0
        used = time.process_time()
        for chunk in chunks(corpus, scope.tokenizer, window=scope.shape.window):
            between = time.process_time()
            cut += between - used
            # What comes from a task that tokenises is taken apart, and put together for a worker.
            sent = pickle.dumps(pickle.loads(pickle.dumps(chunk, 5)), 5)
            tokens, weighs = tokens + chunk.tokens, weighs + len(sent)
            used = time.process_time()
            handed += (used - between) * 2 / 3  # one of the three is done by the task
        print(
            f"{documents} documents: read {file.stat().st_size / plain / 1e6:,.0f} MB/s, ", end=""
        )
        print(f"tokenised {tokens / cut:,.0f}, handed on {tokens / handed:,.0f} tokens ", end="")
        print("a second of a processor; ", end="")
        print(f"{file.stat().st_size / tokens:.1f} bytes of text and ", end="")
        print(f"{weighs / tokens:.0f} of a window a token")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("engines", "steady", "states", "read"))
    parser.add_argument("--megabytes", type=float, default=0.025)
    parser.add_argument("--only", default="", help="ways whose names have this in them")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--states", type=int, default=1000)
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if given.what == "engines":
        engines(given.megabytes, given.rounds, given.only)
    elif given.what == "steady":
        steady(given.megabytes, given.rounds, given.only)
    elif given.what == "states":
        states(given.states)
    else:
        read(given.megabytes)


if __name__ == "__main__":
    main()
