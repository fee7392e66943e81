"""Run every measure over a corpus: read, observe, add up, and write the study folder.

The corpus goes by in chunks, read in this process or elsewhere (`reader.Engine`), and added in the
order of the corpus. Here a chunk is read in batches, and after each the sums are whole. From time
to time, and when the run is interrupted, they are saved; a run that was stopped, by whatever means,
goes on from there and ends with the same tables.
"""

import platform
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
import transformers

from headscope import __version__
from headscope.compute.background import Behind
from headscope.corpus import Corpus, Skipped, printable
from headscope.errors import CannotRead, CannotStudy, NoCorpus, OtherStudy
from headscope.observed import ObservedModel
from headscope.pairs.cuda import MEMORY
from headscope.shapes import ModelShape
from headscope.study.checkpoint import STATE, packed, resume
from headscope.study.examples import example_pairs, keep
from headscope.study.folder import Study, open_study
from headscope.study.half_precision import warn
from headscope.study.interruption import Interruption
from headscope.study.manifest import (
    Manifest,
    StudiedCorpus,
    StudiedModel,
    StudiedNulls,
    StudiedWith,
    plain,
)
from headscope.study.nulls import keep_for_nulls, units_of
from headscope.study.observe import Observer
from headscope.study.parameters import Parameters
from headscope.study.prepare import prepare
from headscope.study.progress import Progress, Quiet
from headscope.study.reader import (
    CHUNK_BATCHES,
    Engine,
    Job,
    Reader,
    Readers,
    Run,
    add,
    read_chunk,
    so_many_threads,
    totals_of,
    vocabulary_of,
)
from headscope.study.sums import STRETCH, Chunked, on_host
from headscope.study.writer import StudyFolder
from headscope.units import (
    LISTED,
    Chunk,
    Padding,
    Position,
    Through,
    ahead,
    batches,
    chunks,
    fingerprint,
    in_turn,
)

SAVE_EVERY = 10.0  # seconds
INSTEAD = {
    "python": "Name another folder, or replace that study with force=True.",
    "command": "Name another folder with --out, or replace that study with --force.",
}


@dataclass(slots=True)
class Counts:
    """How far a study has come."""

    items: int = 0
    windows: int = 0  # of the document that is not done with
    steps: int = 0  # of the chunk that is not done with: batches
    chunk: str = ""  # its tokens, as a hash, so that it is known again
    documents: int = 0
    units: int = 0
    tokens: int = 0
    padded: int = 0  # tokens with the padding of batches
    fingerprint: int = 0
    seconds: float = 0.0
    failures: int = 0
    skipped: list[dict[str, Any]] = field(default_factory=list)  # the first of the failures
    examples: list[dict[str, Any]] = field(default_factory=list)  # of `examples.keep`
    for_nulls: list[dict[str, Any]] = field(default_factory=list)  # of `nulls.keep_for_nulls`


def study(
    scope: ObservedModel,
    source: str | Path | Iterable[Any] | Corpus,
    out: str | Path,
    parameters: Parameters | None = None,
    *,
    strict: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
    threads: int | None = None,
    readers: Readers | None = None,
    device_memory: float | None = None,
) -> Study:
    """Study a corpus and write the result to a folder, going on where an earlier run stopped.

    With `strict` the first document that cannot be read stops the study. With `force` another study
    that is in the folder is replaced; nothing but a study ever is. Chunks are read by the workers
    of an `engine`, or in this process, with so many `threads` of torch. Documents become units
    where the engine has it done, or in the processes of `readers`. On a GPU statistics take at most
    about so many GiB of `device_memory` beyond the model's own pass.
    """
    corpus = source if isinstance(source, Corpus) else Corpus(source)
    parameters = parameters or Parameters()
    folder = StudyFolder(out)
    memory = MEMORY if device_memory is None else device_memory
    if not 0.1 <= memory <= 10_000:
        raise CannotStudy(f"device_memory has to be a number of GiB from 0.1 on, not {memory}.")
    told = progress or Quiet()
    where = (engine, threads, readers, memory)
    run = partial(_Run, scope, corpus, folder, parameters, strict, told, *where)
    try:
        return _made(run(), folder)
    except OtherStudy:
        if not force:
            raise
        anew = run()
        anew.replace()
        return _made(anew, folder)


def _made(run: "_Run", folder: StudyFolder) -> Study:
    """The study of a folder, made now if it is not there."""
    if not folder.finished:
        with folder.held():
            if not folder.finished:  # by another run, in between
                return run.finish()
    found = run.already_there()
    folder.tidy()
    return found


class _Run:
    """One run of a study, from the state it finds to the tables."""

    def __init__(
        self,
        scope: ObservedModel,
        corpus: Corpus,
        folder: StudyFolder,
        parameters: Parameters,
        strict: bool,
        progress: Progress,
        engine: Engine | None,
        threads: int | None,
        readers: Readers | None,
        memory: float,
    ):
        self.scope, self.corpus, self.folder = scope, corpus, folder
        self.engine, self.readers, self.memory = engine, readers, memory
        self.parameters, self.strict, self.progress = parameters, strict, progress
        self.window = parameters.window or scope.shape.window
        if scope.shape.window and self.window and self.window > scope.shape.window:
            raise CannotStudy(
                f"window={self.window} is more than the model's {scope.shape.window} tokens."
            )
        needed = scope.tokenizer.num_special_tokens_to_add() + 2
        if self.window and self.window < needed:
            raise CannotStudy(
                f"window={self.window} leaves no room for a pair of tokens: with this tokenizer's "
                f"special tokens it takes {needed}."
            )
        on_cuda = scope.model.device.type == "cuda"  # and the statistics with it
        self.padding = Padding(parameters.padding, self.window)
        self.batch_tokens = parameters.batch_tokens or (2**15 if on_cuda else 2**11)
        shape = studied_shape(scope.shape)
        self.about: dict[str, Any] = {
            "model": {**shape, "weights": weight_hash(scope.model)},
            "silenced": [list(pair) for pair in sorted(scope.silenced)],
            "corpus": {
                "name": corpus.name,
                "document": corpus.document,
                "column": printable(corpus.column),
                "files": None if corpus.files is None else printable(corpus.files),
            },
            "parameters": parameters.as_dict() | {"batch_tokens": self.batch_tokens},
        }
        self.totals = totals_of(parameters)
        self.counts = Counts()
        self.chunk = Chunked(0)
        self.begun = self.saved = time.monotonic()
        usual = torch.get_num_threads() if engine is None else engine.threads
        self.threads = threads or usual

    def finish(self) -> Study:
        """Run to the end and write the tables."""
        self._resume()
        self.begun = time.monotonic() - self.counts.seconds
        with so_many_threads(self.threads):
            scope = self.scope
            job = Job(
                scope.loaded,
                scope.silenced,
                self.parameters,
                self.padding,
                self.batch_tokens,
                self.threads,
                self.memory,
            )
            reader = Reader(job)
            warn(str(scope.model.dtype).removeprefix("torch."))
            self.progress.start(self.corpus, self.counts.documents, self.counts.tokens)
            with self.progress, Interruption(self.progress.stopping) as stop:
                if self.engine is None:
                    self._read_here(reader, stop)
                else:
                    self._read_elsewhere(self.engine, reader, stop)
                if stop.asked:
                    self._save()
                    raise KeyboardInterrupt
            if not self.counts.units:
                raise NoCorpus(self._nothing())
            self._save()
            self.totals.settle()
            nulls = self._read_nulls(reader)
            return self._write(reader.observer, nulls)

    def _read_here(self, reader: Reader, stop: Interruption) -> None:
        """Read every chunk in this process, unless stopped."""
        with reader.observer.behind() as behind:
            for number, chunk in enumerate(ahead(self._chunks(), lambda: stop.asked)):
                self._check(chunk, number)
                if not self._observe(chunk, reader, behind, stop):
                    break
                if chunk.units:
                    behind(self.totals.close, chunk.units, self.chunk, reader.vocabulary)
                self._close(chunk)
            behind.wait()

    def _read_elsewhere(self, engine: Engine, reader: Reader, stop: Interruption) -> None:
        """Have every chunk read by workers, unless stopped, and add what comes back in order.

        A chunk that an earlier run has read in part, in its own process, is read again.
        """
        self.counts.steps, self.chunk = 0, Chunked(0)
        made = ahead(self._chunks(), lambda: stop.asked)
        with closing(engine.read(reader.job, self._runs(made, engine), lambda: stop.asked)) as read:
            for run, answer in read:
                add(answer, run, self.totals, reader.vocabulary)
                for chunk in run.chunks:
                    self._close(chunk)
                    self.progress.advance(chunk.units)
                if time.monotonic() - self.saved > SAVE_EVERY and not stop.asked:
                    self._save()

    def _runs(self, made: Iterator[Chunk], engine: Engine) -> Iterator[Run]:
        """Chunks one by one, or by whole stretches where a stretch begins."""
        begun, stretch = self.totals.chunks % STRETCH, list[Chunk]()
        for number, chunk in enumerate(made):
            self._check(chunk, number)
            if not engine.stretches or begun:
                begun = (begun + 1) % STRETCH
                yield Run([chunk])
                continue
            stretch.append(chunk)
            if len(stretch) == STRETCH:
                yield Run(stretch, stretch=True)
                stretch = []
        if stretch:
            yield Run(stretch, stretch=True)

    def _read_nulls(self, reader: Reader) -> StudiedNulls:
        """Read the sample for nulls in every mode, and say on what; those that cannot be, and why.

        A run that is stopped here goes on from the state before, so it is read whole or not at all.
        """
        parameters, kept = self.parameters, self.counts.for_nulls
        # Under the other rules of a sweep verdicts are given without nulls.
        kinds, rules = parameters.kinds, (parameters.rule,)
        given = (parameters.seed, self.padding, self.memory)
        observer = Observer(self.scope, kinds, rules, *given)
        units = units_of(kept, self.scope.tokenizer, self.window, parameters.language)
        why = {mode: observer.cannot(mode) for mode in parameters.modes}
        cannot = {str(mode): said for mode, said in why.items() if said is not None}
        totals = totals_of(parameters)
        with reader.observer.behind() as behind:
            for mode in parameters.modes:
                if mode in cannot:
                    continue
                groups, seen = batches(units, self.batch_tokens, self.padding), Chunked(len(units))
                for _ in read_chunk(
                    units, groups, (mode,), observer, reader.vocabulary, behind, seen
                ):
                    pass
                if units:
                    behind(totals.close, units, seen, reader.vocabulary)
            behind.wait()
        self.totals.sums |= on_host(totals.sums)
        tokens = sum(len(unit) for unit in units)
        return StudiedNulls(len(units), tokens, cannot)

    def replace(self) -> None:
        """Begin this study in the place of another one, of which nothing is left."""
        with self.folder.replaced():
            self._save()

    def _chunks(self) -> Any:
        return chunks(
            self.corpus,
            self.scope.tokenizer,
            window=self.window,
            language=self.parameters.language,
            chunk_tokens=CHUNK_BATCHES * self.batch_tokens,
            start=Position(self.counts.items, self.counts.windows),
            through=self._through(),
        )

    def _through(self) -> Through:
        """Where documents become units."""
        if self.readers is None:
            return in_turn if self.engine is None else self.engine.through
        ready = partial(
            prepare,
            seed=self.parameters.seed,
            vocabulary=vocabulary_of(self.scope.tokenizer),
            causal=self.scope.shape.causal,
        )
        return partial(self.readers.through, prepare=ready)

    def _observe(self, chunk: Chunk, reader: Reader, behind: Behind, stop: Interruption) -> bool:
        """Observe every unit of a chunk, unless stopped; the sums are saved from time to time."""
        counts = self.counts
        self.chunk.units = len(chunk.units)
        for read in reader.steps(chunk.units, self.chunk, behind, counts.steps):
            counts.steps += 1
            self.progress.advance(read)
            if stop.asked or time.monotonic() - self.saved > SAVE_EVERY:
                behind.wait()
                counts.chunk = _name_of(chunk)
                if stop.asked:
                    return False
                self._save()
        return True

    def _close(self, chunk: Chunk) -> None:
        """Count a chunk that was added whole."""
        counts, parameters = self.counts, self.parameters
        for skipped in chunk.skipped:
            if len(counts.skipped) < LISTED:
                self.progress.skipped(skipped)
                counts.skipped.append(asdict(skipped))
        counts.examples = keep(counts.examples, chunk.units, parameters.seed, parameters.texts)
        if parameters.nulls:
            counts.for_nulls = keep_for_nulls(
                counts.for_nulls, chunk.units, parameters.seed, parameters.null_tokens
            )
        counts.items, counts.windows = chunk.after.items, chunk.after.windows
        counts.documents += chunk.documents
        counts.failures += chunk.failures
        counts.units += len(chunk.units)
        counts.tokens += chunk.tokens
        counts.padded += sum(self.padding.length(len(unit)) for unit in chunk.units)
        counts.fingerprint = (counts.fingerprint + chunk.fingerprint) % 2**128
        counts.steps, counts.chunk, self.chunk = 0, "", Chunked(0)

    def _save(self) -> None:
        self.counts.seconds = time.monotonic() - self.begun
        arrays, sums = packed(self.totals, self.chunk)
        counts = asdict(self.counts) | {"fingerprint": str(self.counts.fingerprint)}
        said = {"state": STATE, "about": self.about, "counts": counts, "threads": self.threads}
        said["sums"] = sums
        self.folder.save_state(arrays, said)
        self.saved = time.monotonic()

    def _resume(self) -> None:
        state = self.folder.load_state()
        if state is None:
            return
        arrays, said = state
        if said.get("state") != STATE:
            raise OtherStudy(
                f"The study in '{self.folder.path}' was begun by another version of headscope, "
                "which added up other things.",
                **INSTEAD,
            )
        self._refuse_other(said["about"])
        self.counts = Counts(**said["counts"] | {"fingerprint": int(said["counts"]["fingerprint"])})
        resume(arrays, said["sums"], self.totals, self.chunk)
        self.threads = said["threads"]  # as it began, since torch rounds by their number

    def _refuse_other(self, other: dict[str, Any]) -> None:
        """Raise where the folder holds another study than the one asked for."""
        refuse_other(self.about, other, self.folder.path)

    def _check(self, chunk: Chunk, number: int) -> None:
        """Raise where a chunk cannot be gone on with: the first is not the one that comes next."""
        for skipped in chunk.skipped if self.strict else ():
            raise CannotRead(f"{skipped}. Without --strict the study goes on past it.")
        if number:
            return
        counts, first = self.counts, chunk
        moved = counts.chunk and counts.chunk != _name_of(first)
        if moved or first.passed % 2**128 != counts.fingerprint:
            raise OtherStudy(
                f"The corpus has changed since the study in '{self.folder.path}' began: the first "
                f"{counts.items + bool(counts.chunk):,} documents are not the same.",
                **INSTEAD,
            )

    def already_there(self) -> Study:
        """Return the finished study of the folder, if it is the one asked for."""
        found = open_study(self.folder.path)
        self._refuse_other(plain(found.manifest))
        there, now = found.manifest.corpus.fingerprint, f"{fingerprint(self.corpus):032x}"
        if there != now:
            raise OtherStudy(
                f"'{self.folder.path}' holds the study of another corpus than '{self.corpus.name}' "
                f"is now: its {found.manifest.corpus.documents:,} documents are not the same.",
                **INSTEAD,
            )
        return found

    def _nothing(self) -> str:
        failures, skipped = self.counts.failures, self.counts.skipped
        first = f" The first failure: {Skipped(**skipped[0])}." if skipped else ""
        return f"No document of '{self.corpus.name}' could be read ({failures:,} failed).{first}"

    def _write(self, observer: Observer, nulls: StudiedNulls) -> Study:
        from headscope.study.results import result_tables

        counts = self.counts
        tables = result_tables(
            self.totals,
            self.parameters,
            nulls.cannot,
            self.scope.tokenizer,
            example_pairs(counts.examples, observer, self.window, self.parameters.language),
            counts.examples,
            [Skipped(**one) for one in counts.skipped],
        )
        corpus = {
            **self.about["corpus"],
            "fingerprint": f"{counts.fingerprint:032x}",
            "documents": counts.documents,
            "windows": counts.units,
            "tokens": counts.tokens,
            "skipped": counts.failures,
        }
        manifest = Manifest(
            headscope=__version__,
            torch=torch.__version__,
            transformers=transformers.__version__,
            python=platform.python_version(),
            model=StudiedModel(**self.about["model"]),
            silenced=tuple(sorted(self.scope.silenced)),
            corpus=StudiedCorpus(**corpus),
            parameters=StudiedWith(**self.about["parameters"]),
            focus=observer.no_focus or "measured",
            nulls=nulls,
            device=str(self.scope.model.device),
            dtype=str(self.scope.model.dtype).removeprefix("torch."),
            threads=self.threads,
            padding=round(1 - counts.tokens / counts.padded, 4),
            seconds=round(counts.seconds, 3),
            tokens_per_second=round(counts.tokens / max(counts.seconds, 1e-9), 1),
            tables={},
        )
        self.folder.finish(tables, manifest)
        return open_study(self.folder.path)


def refuse_other(about: dict[str, Any], other: dict[str, Any], path: Path) -> None:
    """Raise where a folder holds another study than one that says this about itself."""
    changed = [
        f"{part} {name}: {other[part].get(name)} there, {value} now"
        for part in ("model", "corpus", "parameters")
        for name, value in about[part].items()
        if other[part].get(name) != value
    ]
    if about["silenced"] != other["silenced"]:
        changed.append("silenced heads")
    if changed:
        raise OtherStudy(f"'{path}' holds another study ({'; '.join(changed)}).", **INSTEAD)


def _name_of(chunk: Chunk) -> str:
    """A hash of the tokens of a chunk."""
    digest = blake2b(digest_size=16)
    for unit in chunk.units:
        digest.update(len(unit).to_bytes(8, "little") + unit.tokens.ids.tobytes())
    return digest.hexdigest()


def studied_shape(shape: ModelShape) -> dict[str, Any]:
    """What a manifest says of the shape of a model."""
    names = {one.name for one in fields(StudiedModel)} - {"weights", "numbers"}
    said = {name: getattr(shape, name) for name in names} | {"name": printable(shape.name)}
    return said | ({"numbers": list(shape.numbers)} if shape.has_gaps else {})


def weight_hash(model: Any) -> str:
    """A name for these very weights."""
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        plain = tensor.detach().cpu().contiguous()
        digest.update(plain.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
