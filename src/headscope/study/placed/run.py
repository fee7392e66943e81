"""Study pictures or sounds: read each, add up what its heads show, and write the study folder.

As a study of texts, in a smaller way: one input at a time, in this process. The sums are saved from
time to time, and a run that was stopped goes on from there and ends with the same tables.
"""

import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import transformers

from headscope import __version__
from headscope.corpus import Skipped, printable
from headscope.errors import CannotRead, CannotStudy, HeadscopeError, NoCorpus, OtherStudy
from headscope.inputs.positions import Positions
from headscope.observed import ObservedModel
from headscope.pairs import Quantile
from headscope.study.bootstrap import document_weights
from headscope.study.estimates import OtherTotals
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
from headscope.study.modes import Mode
from headscope.study.nulls import other_weights
from headscope.study.parameters import Parameters
from headscope.study.placed.corpus import NAMED, PlacedCorpus, PlacedDocument
from headscope.study.placed.measures import MEASURES
from headscope.study.placed.observe import Found, PlacedObserver, unit_of
from headscope.study.placed.results import result_tables
from headscope.study.progress import Progress, Quiet
from headscope.study.run import INSTEAD, SAVE_EVERY, refuse_other, studied_shape, weight_hash
from headscope.study.sums import Key
from headscope.study.writer import StudyFolder
from headscope.units import LISTED, ahead

STATE = 1  # changes whenever other arrays are added up
NULLS = ("random", "permuted")  # that need no text


@dataclass(frozen=True, slots=True)
class _Read:
    """A picture or a sound on its way: what the model is given, or why there is nothing."""

    document: PlacedDocument
    content: bytes
    given: dict[str, torch.Tensor] | None = None
    positions: Positions | None = None
    failed: str = ""
    window: int = 0
    part: int = 0
    text: str = ""

    def __len__(self) -> int:
        return 0 if self.positions is None else len(self.positions)


@dataclass(slots=True)
class _Counts:
    """How far a study has come."""

    items: int = 0
    documents: int = 0
    positions: int = 0
    failures: int = 0
    fingerprint: int = 0
    seconds: float = 0.0
    unit: str = ""  # of distances
    skipped: list[dict[str, Any]] = field(default_factory=list)
    for_nulls: list[tuple[str, int, int]] = field(default_factory=list)  # drawn: content, …


def usual_parameters(given: dict[str, Any]) -> Parameters:
    """The parameters of a study of pictures or sounds; raises for what means nothing there."""
    made = Parameters(**{"nulls": NULLS, **given, "texts": 0, "padding": 0.0, "batch_tokens": 1})
    if not isinstance(made.rule, Quantile) or made.sweep:
        asked = "a sweep" if made.sweep else made.rule
        raise CannotStudy(
            f"High pairs of pictures and sounds are those of one quantile(…), not of {asked}."
        )
    if others := [one for one in made.nulls if one not in NULLS]:
        raise CannotStudy(
            f"The null {others[0]} needs a text. Of pictures and sounds there are: "
            f"{', '.join(NULLS)}, or none."
        )
    if made.group != "document" or made.window is not None:
        raise CannotStudy(
            "Pictures and sounds are read whole, and intervals are over documents: leave group "
            "and window out."
        )
    return made


def placed_study(
    scope: ObservedModel,
    corpus: PlacedCorpus,
    out: Any,
    parameters: Parameters,
    *,
    strict: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Study pictures or sounds and write the result to a folder, going on where a run stopped."""
    folder = StudyFolder(out)
    run = _Run(scope, corpus, folder, parameters, strict, progress or Quiet())
    try:
        return run.made()
    except OtherStudy:
        if not force:
            raise
        anew = _Run(scope, corpus, folder, parameters, strict, progress or Quiet())
        with folder.replaced():
            anew.save()
        return anew.made()


class _Run:
    """One run of a study, from the state it finds to the tables."""

    def __init__(
        self,
        scope: ObservedModel,
        corpus: PlacedCorpus,
        folder: StudyFolder,
        parameters: Parameters,
        strict: bool,
        progress: Progress,
    ):
        self.scope, self.corpus, self.folder = scope, corpus, folder
        self.parameters, self.strict, self.progress = parameters, strict, progress
        self.about: dict[str, Any] = {
            "model": {**studied_shape(scope.shape), "weights": weight_hash(scope.model)},
            "silenced": [list(pair) for pair in sorted(scope.silenced)],
            "corpus": {
                "name": corpus.name,
                "document": "file",
                "column": "",
                "files": None if corpus.files is None else printable(corpus.files),
                "kind": corpus.kind,
            },
            "parameters": parameters.as_dict(),
        }
        self.totals = OtherTotals(parameters.replicates, parameters.seed, measures=MEASURES)
        self.counts = _Counts()
        self.begun = self.saved = time.monotonic()

    def made(self) -> Study:
        """The study of the folder, made now if it is not there."""
        if not self.folder.finished:
            with self.folder.held():
                if not self.folder.finished:
                    return self._finish()
        found = self._already_there()
        self.folder.tidy()
        return found

    def _finish(self) -> Study:
        self._resume()
        self.begun = time.monotonic() - self.counts.seconds
        observer = PlacedObserver(self.scope, self.parameters)
        warn(str(self.scope.model.dtype).removeprefix("torch."))
        self.progress.start(self.corpus, self.counts.documents, self.counts.positions)
        with self.progress, Interruption(self.progress.stopping) as stop:
            # A sound is made ready with the model, which is busy here; a picture without it.
            read_ahead = self.corpus.kind == "image"
            reads = ahead(self._to_read(), lambda: stop.asked) if read_ahead else self._to_read()
            for read in reads:
                self._add(read, observer)
                if stop.asked:
                    break
                if time.monotonic() - self.saved > SAVE_EVERY and not stop.asked:
                    self.save()
            if stop.asked:
                self.save()
                raise KeyboardInterrupt
        if not self.counts.documents:
            raise NoCorpus(self._nothing())
        self.save()
        return self._write(observer, self._read_nulls())

    def _to_read(self) -> Iterator[_Read]:
        """What was not read before, opened; raises where what was read before has changed."""
        passed, before, documents = 0, self.counts.items, iter(self.corpus)
        for document in islice(documents, before):
            with suppress(CannotRead):
                passed += _number(document.content(self.corpus.kind))
        self._check(passed)
        yield from map(self._opened, documents)

    def _check(self, passed: int) -> None:
        if passed % 2**128 != self.counts.fingerprint:
            raise OtherStudy(
                f"The corpus has changed since the study in '{self.folder.path}' began: the first "
                f"{self.counts.items:,} documents are not the same.",
                **INSTEAD,
            )

    def _opened(self, document: PlacedDocument) -> _Read:
        content = bytes(16)
        try:
            content = document.content(self.corpus.kind)
            sense = self.scope.loaded.sense
            assert sense is not None
            return _Read(document, content, *sense.take(document.given))
        except CannotRead as error:
            # What lies where on this machine is nobody else's business.
            place = document.given if isinstance(document.given, (str, Path)) else document.name
            said = str(error).replace(str(place), document.name)
            return _Read(document, content, failed=said)

    def _add(self, read: _Read, observer: PlacedObserver) -> None:
        """Add one picture or sound to the sums, or say why not."""
        counts = self.counts
        found: Found = {}
        failed = read.failed
        if read.given is not None and read.positions is not None:
            try:
                found = observer.see(read.given, read.positions, "real")
                counts.unit = counts.unit or unit_of(read.positions)
            except CannotRead as error:
                failed = str(error)
        counts.items += 1
        counts.fingerprint = (counts.fingerprint + _number(read.content)) % 2**128
        if failed:
            self._skip(Skipped(read.document.name, None, failed))
            return
        self._add_up(found, read.content)
        counts.documents += 1
        counts.positions += len(read)
        if self.parameters.nulls:
            self._draw(read)
        self.progress.advance([read])

    def _skip(self, skipped: Skipped) -> None:
        if self.strict:
            raise CannotRead(f"{skipped} Without --strict the study goes on past it.")
        self.counts.failures += 1
        if len(self.counts.skipped) < LISTED:
            self.progress.skipped(skipped)
            self.counts.skipped.append(asdict(skipped))

    def _add_up(self, found: Found, content: bytes) -> None:
        weights = document_weights(content, self.parameters.seed, self.parameters.replicates)
        for key, arrays in found.items():
            held = self.totals.sums.setdefault(key, {})
            for name, value in arrays.items():
                added = weights[:, None, None] * value
                if name in held:
                    held[name] += added
                else:
                    held[name] = added

    def _draw(self, read: _Read) -> None:
        """Keep those whose contents come first, as many as nulls are run on; at least one."""
        priority = _number(document_priority(read.content, self.parameters.seed)) % 2**62
        new = (read.content.hex(), priority, len(read))
        kept = sorted({*self.counts.for_nulls, new}, key=lambda one: one[1])
        total, within = 0, 0
        for one in kept:
            total += one[2]
            if within and total > self.parameters.null_tokens:
                break
            within += 1
        self.counts.for_nulls = kept[:within]

    def _read_nulls(self) -> StudiedNulls:
        """Read the sample with other weights."""
        drawn = {content for content, _, _ in self.counts.for_nulls}
        if not drawn:
            return StudiedNulls(0, 0, {})
        chosen: list[_Read] = []
        for document in self.corpus:
            with suppress(CannotRead):
                content = document.content(self.corpus.kind).hex()
                if content in drawn:
                    drawn.discard(content)
                    chosen.append(self._opened(document))
        cannot: dict[str, str] = {}
        for mode in self.parameters.modes:
            try:
                self._read_null(mode, chosen)
            except HeadscopeError as error:  # such as NaN from weights in another order
                cannot[mode] = str(error)[:200]
                for key in [key for key in self.totals.sums if key.mode == mode]:
                    del self.totals.sums[key]
        return StudiedNulls(len(chosen), sum(map(len, chosen)), cannot)

    def _read_null(self, mode: Mode, chosen: list[_Read]) -> None:
        observer = PlacedObserver(_other(self.scope, mode, self.parameters.seed), self.parameters)
        for read in chosen:
            assert read.given is not None
            assert read.positions is not None
            self._add_up(observer.see(read.given, read.positions, mode), read.content)

    def save(self) -> None:
        """Save the sums, to go on from."""
        self.counts.seconds = time.monotonic() - self.begun
        arrays = {
            f"{key}/{name}": value
            for key, held in self.totals.sums.items()
            for name, value in held.items()
        }
        counts = asdict(self.counts) | {"fingerprint": str(self.counts.fingerprint)}
        said = {"state": f"placed {STATE}", "about": self.about, "counts": counts}
        self.folder.save_state(arrays, said)
        self.saved = time.monotonic()

    def _resume(self) -> None:
        state = self.folder.load_state()
        if state is None:
            return
        arrays, said = state
        if said.get("state") != f"placed {STATE}":
            raise OtherStudy(
                f"'{self.folder.path}' holds the beginning of another study, or one begun by "
                "another version of headscope.",
                **INSTEAD,
            )
        refuse_other(self.about, said["about"], self.folder.path)
        counts = said["counts"]
        counts["for_nulls"] = [tuple(one) for one in counts["for_nulls"]]
        self.counts = _Counts(**counts | {"fingerprint": int(counts["fingerprint"])})
        for path, value in arrays.items():
            key, name = path.split("/")
            self.totals.sums.setdefault(Key.parse(key), {})[name] = value

    def _already_there(self) -> Study:
        """The finished study of the folder, if it is the one asked for."""
        found = open_study(self.folder.path)
        refuse_other(self.about, plain(found.manifest), self.folder.path)
        now = 0
        for document in self.corpus:
            with suppress(CannotRead):
                now += _number(document.content(self.corpus.kind))
        if found.manifest.corpus.fingerprint != f"{now % 2**128:032x}":
            raise OtherStudy(
                f"'{self.folder.path}' holds the study of other documents than "
                f"'{self.corpus.name}' holds now.",
                **INSTEAD,
            )
        return found

    def _nothing(self) -> str:
        counts = self.counts
        first = f" The first failure: {Skipped(**counts.skipped[0])}" if counts.skipped else ""
        what = NAMED[self.corpus.kind]
        return (
            f"No {what} of '{self.corpus.name}' could be read ({counts.failures:,} failed).{first}"
        )

    def _write(self, observer: PlacedObserver, nulls: StudiedNulls) -> Study:
        counts = self.counts
        skipped = [Skipped(**one) for one in counts.skipped]
        tables = result_tables(self.totals, self.parameters, nulls.cannot, counts.unit, skipped)
        corpus = StudiedCorpus(
            **self.about["corpus"],
            fingerprint=f"{counts.fingerprint:032x}",
            documents=counts.documents,
            windows=counts.documents,
            tokens=counts.positions,
            skipped=counts.failures,
        )
        manifest = Manifest(
            headscope=__version__,
            torch=torch.__version__,
            transformers=transformers.__version__,
            python=platform.python_version(),
            model=StudiedModel(**self.about["model"]),
            silenced=tuple(sorted(self.scope.silenced)),
            corpus=corpus,
            parameters=StudiedWith(**self.about["parameters"]),
            focus=observer.no_focus or "measured",
            nulls=nulls,
            device=str(self.scope.model.device),
            dtype=str(self.scope.model.dtype).removeprefix("torch."),
            threads=torch.get_num_threads(),
            padding=0.0,
            seconds=round(counts.seconds, 3),
            tokens_per_second=round(counts.positions / max(counts.seconds, 1e-9), 1),
            tables={},
        )
        self.folder.finish(tables, manifest)
        return open_study(self.folder.path)


def _number(content: bytes) -> int:
    return int.from_bytes(content, "little")


def document_priority(content: bytes, seed: int) -> bytes:
    """Sixteen bytes that draw a document, whatever stands beside it."""
    from hashlib import blake2b

    return blake2b(content, digest_size=16, key=f"{seed} null".encode()).digest()


def _other(scope: ObservedModel, mode: Mode, seed: int) -> ObservedModel:
    """The same architecture with other weights, reading in the same way."""
    loaded = scope.loaded
    sense = loaded.sense
    assert sense is not None
    path = next(name for name, one in loaded.model.named_modules() if one is sense.part)
    model = other_weights(loaded.model, mode, seed)
    part = model.get_submodule(path) if path else model
    reads = replace(sense, part=part)
    return ObservedModel(replace(loaded, model=model, backbone=part, sense=reads), scope.silenced)
