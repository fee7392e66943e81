"""Run every measure over a corpus: read, observe, add up, and write the study folder.

The corpus goes by in chunks. After each the sums are whole, and from time to time they are saved;
a run that was stopped, by whatever means, goes on from there and ends with the same tables.
"""

import json
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
import transformers

from headscope import __version__
from headscope.corpus import Corpus, NoCorpus, Skipped
from headscope.errors import CannotRead
from headscope.scope import Scope
from headscope.store import CannotStudy, Study, StudyFolder, open_study
from headscope.study.behind import Behind
from headscope.study.checkpoint import STATE, packed, unpack
from headscope.study.examples import example_pairs, keep
from headscope.study.observe import Mode, Observer
from headscope.study.parameters import Parameters
from headscope.study.progress import Progress, Quiet
from headscope.study.sums import Chunked, Totals
from headscope.study.units import Chunk, Position, Unit, ahead, batches, chunks

SAVE_EVERY = 10.0  # seconds
CHUNK_BATCHES = 4  # full batches in a chunk: more pad less, fewer lose less to a kill


@dataclass(slots=True)
class Counts:
    """How far a study has come."""

    items: int = 0
    windows: int = 0  # of the document that is not done with
    documents: int = 0
    units: int = 0
    tokens: int = 0
    padded: int = 0  # tokens with the padding of batches
    fingerprint: int = 0
    seconds: float = 0.0
    skipped: list[dict[str, Any]] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)  # of `examples.keep`


def study(
    scope: Scope,
    source: str | Path | Iterable[Any] | Corpus,
    out: str | Path,
    parameters: Parameters | None = None,
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Study a corpus and write the result to a folder, going on where an earlier run stopped.

    With `strict` the first document that cannot be read stops the study.
    """
    corpus = source if isinstance(source, Corpus) else Corpus(source)
    parameters = parameters or Parameters()
    folder = StudyFolder(out)
    run = _Run(scope, corpus, folder, parameters, strict, progress or Quiet())
    if folder.finished:
        return run.already_there()
    with folder.held():
        return run.finish()


class _Run:
    """One run of a study, from the state it finds to the tables."""

    def __init__(
        self,
        scope: Scope,
        corpus: Corpus,
        folder: StudyFolder,
        parameters: Parameters,
        strict: bool,
        progress: Progress,
    ):
        self.scope, self.corpus, self.folder = scope, corpus, folder
        self.parameters, self.strict, self.progress = parameters, strict, progress
        self.window = parameters.window or scope.shape.window
        if scope.shape.window and self.window and self.window > scope.shape.window:
            raise CannotStudy(
                f"window={self.window} is more than the model's {scope.shape.window} tokens."
            )
        on_cpu = scope.model.device.type == "cpu"
        self.batch_tokens = parameters.batch_tokens or (2**11 if on_cpu else 2**15)
        self.about: dict[str, Any] = {
            "model": {**scope.shape.as_dict(), "weights": weight_hash(scope.model)},
            "silenced": sorted(scope.silenced),
            "corpus": {
                "name": corpus.name,
                "cut": corpus.cut,
                "column": corpus.column,
                "pattern": corpus.pattern,
            },
            "parameters": parameters.as_dict() | {"batch_tokens": self.batch_tokens},
        }
        self.totals = Totals(parameters.replicates, parameters.seed)
        self.counts = Counts()
        # More tokens than the model's own vocabulary may have been added to a tokenizer.
        self.vocabulary = max(len(scope.tokenizer), int(scope.tokenizer.vocab_size))

    def finish(self) -> Study:
        """Run to the end and write the tables."""
        self._resume()
        parameters = self.parameters
        observer = Observer(
            self.scope,
            parameters.kinds,
            parameters.rules,
            parameters.seed,
            nulls=bool({"uniform", "identity"} & set(parameters.nulls)),
        )
        begun, before = time.monotonic(), self.counts.seconds
        saved = begun
        self.progress.start(self.corpus, self.counts.documents, self.counts.tokens)
        with self.progress, Behind() as behind:
            for number, chunk in enumerate(ahead(self._chunks())):
                if number == 0:
                    self._check_same_corpus(chunk)
                self._add(chunk, observer, behind)
                self.counts.seconds = before + time.monotonic() - begun
                if time.monotonic() - saved > SAVE_EVERY:
                    behind.wait()
                    self._save()
                    saved = time.monotonic()
            behind.wait()
        if not self.counts.units:
            raise NoCorpus(self._nothing())
        self._save()
        return self._write(observer)

    def _chunks(self) -> Any:
        return chunks(
            self.corpus,
            self.scope.tokenizer,
            window=self.window,
            language=self.parameters.language,
            chunk_tokens=CHUNK_BATCHES * self.batch_tokens,
            start=Position(self.counts.items, self.counts.windows),
        )

    def _add(self, chunk: Chunk, observer: Observer, behind: Behind) -> None:
        """Observe every unit of a chunk in every mode, and add it to the totals."""
        counts = self.counts
        for skipped in chunk.skipped:
            if self.strict:
                raise CannotRead(f"{skipped}. Without --strict the study goes on past it.")
            self.progress.skipped(skipped)
            counts.skipped.append(asdict(skipped))
        groups = batches(chunk.units, self.batch_tokens, self.parameters.padding)
        modes: tuple[Mode, ...] = ("real", *self.parameters.nulls)
        for units in read_chunk(
            chunk.units, groups, modes, observer, self.totals, self.vocabulary, behind
        ):
            counts.padded += max(len(unit) for unit in units) * len(units)
            self.progress.advance(units)
        counts.examples = keep(counts.examples, chunk.units, self.parameters.seed)
        counts.items, counts.windows = chunk.after.items, chunk.after.windows
        counts.documents += chunk.documents
        counts.units += len(chunk.units)
        counts.tokens += chunk.tokens
        counts.fingerprint = (counts.fingerprint + chunk.fingerprint) % 2**128

    def _save(self) -> None:
        arrays, names = packed(self.totals)
        counts = asdict(self.counts) | {"fingerprint": str(self.counts.fingerprint)}
        said = {"state": STATE, "about": self.about, "counts": counts, "types": names}
        self.folder.save_state(arrays, said)

    def _resume(self) -> None:
        state = self.folder.load_state()
        if state is None:
            return
        arrays, said = state
        if said.get("state") != STATE:
            raise CannotStudy(
                f"The study in '{self.folder.path}' was begun by another version of headscope, "
                "which added up other things. Name another folder with --out, or remove this one."
            )
        self._refuse_other(said["about"])
        self.counts = Counts(**said["counts"] | {"fingerprint": int(said["counts"]["fingerprint"])})
        unpack(arrays, said["types"], self.totals)

    def _refuse_other(self, about: dict[str, Any]) -> None:
        """Raise where the folder holds another study than the one asked for."""
        mine, other = json.loads(json.dumps(self.about)), about
        changed = [
            f"{part} {name}: {other[part].get(name)} there, {value} now"
            for part in ("model", "corpus", "parameters")
            for name, value in mine[part].items()
            if other[part].get(name) != value
        ]
        if mine["silenced"] != other["silenced"]:
            changed.append("silenced heads")
        if changed:
            raise CannotStudy(
                f"'{self.folder.path}' holds another study ({'; '.join(changed)}). Name another "
                "folder with --out, or remove this one."
            )

    def _check_same_corpus(self, first: Chunk) -> None:
        if first.passed % 2**128 != self.counts.fingerprint:
            raise CannotStudy(
                f"The corpus has changed since the study in '{self.folder.path}' began: its first "
                f"{self.counts.items} documents are not the same. Remove the folder and start anew."
            )

    def already_there(self) -> Study:
        """Return the finished study of the folder, if it is the one asked for."""
        found = open_study(self.folder.path)
        self._refuse_other({name: found.manifest[name] for name in self.about})
        return found

    def _nothing(self) -> str:
        skipped = self.counts.skipped
        first = f" The first failure: {Skipped(**skipped[0])}." if skipped else ""
        return f"No document of '{self.corpus.name}' could be read ({len(skipped)} failed).{first}"

    def _write(self, observer: Observer) -> Study:
        from headscope.study.results import result_tables

        counts = self.counts
        tables = result_tables(
            self.totals,
            self.parameters.kinds,
            self.parameters.rule,
            self.scope.tokenizer,
            example_pairs(counts.examples, observer, self.window, self.parameters.language),
            [Skipped(**one) for one in counts.skipped],
        )
        device = self.scope.model.device
        manifest = {
            "headscope": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
            **self.about,
            "corpus": {
                **self.about["corpus"],
                "fingerprint": f"{counts.fingerprint:032x}",
                "documents": counts.documents,
                "windows": counts.units,
                "tokens": counts.tokens,
                "skipped": len(counts.skipped),
            },
            "focus": observer.no_focus or "measured",
            "device": str(device),
            "dtype": str(self.scope.model.dtype).removeprefix("torch."),
            "padding": round(1 - counts.tokens / counts.padded, 4),
            "seconds": round(counts.seconds, 3),
            "tokens_per_second": round(counts.tokens / max(counts.seconds, 1e-9), 1),
        }
        self.folder.finish(tables, manifest)
        return open_study(self.folder.path)


def read_chunk(
    units: Sequence[Unit],
    groups: Iterable[Sequence[int]],
    modes: Sequence[Mode],
    observer: Observer,
    totals: Totals,
    vocabulary: int,
    behind: Behind,
) -> Iterator[list[Unit]]:
    """Observe a chunk in every mode, in groups of places, and add it up; yields each group read."""
    gathered = Chunked(len(units))
    for places in groups:
        own = [units[place] for place in places]
        for mode in modes:
            behind(totals.see, gathered, vocabulary, mode, places, *observer.see(own, mode))
        yield own
    if units:
        behind(totals.close, units, gathered, vocabulary)


def weight_hash(model: Any) -> str:
    """A name for these very weights."""
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        plain = tensor.detach().cpu().contiguous()
        digest.update(plain.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
