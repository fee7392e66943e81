"""A verb at work on a study: what it reads, batch by batch, and what it adds in the end.

The study of the folder is opened, or made first where there is none; it has to be of the same
model and corpus. Documents are read as the study read them, and weigh in each replicate what they
weigh there. Nothing is written before everything is known, so a verb that is stopped leaves the
study as it was.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from headscope import __version__
from headscope.corpus import printable
from headscope.effects.sample import Reads, draw, units_of
from headscope.effects.sums import ReplicateSums
from headscope.effects.verb import Verb
from headscope.errors import CannotStudy, NoCorpus, OtherStudy
from headscope.observed import ObservedModel
from headscope.study.folder import Study, open_study
from headscope.study.manifest import Addition, StudiedCorpus
from headscope.study.progress import Progress, Quiet
from headscope.study.reader import CHUNK_BATCHES
from headscope.study.run import study, weight_hash
from headscope.study.writer import StudyFolder
from headscope.units import Padding, Unit, ahead, batches

if TYPE_CHECKING:
    import pyarrow as pa


class Adding:
    """A verb at work; `batches` may be gone through several times, and gives the same each time."""

    def __init__(
        self,
        verb: Verb,
        scope: ObservedModel,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        reads: Reads | None = None,
        progress: Progress | None = None,
    ):
        self.verb, self.scope = verb, scope
        self.reads, self.progress = reads or Reads(), progress or Quiet()
        self.folder = StudyFolder(out)
        said = open_study(out).manifest.corpus if self.folder.finished else None
        refuse_without_texts(scope, said)
        corpus = self.reads.corpus(source, said)
        self.sample = draw(corpus, self.reads.limit, self.reads.seed)
        if said is None:
            study(scope, corpus, out, progress=self.progress)
        self.study = open_study(out)
        self.manifest = self.study.manifest
        self._check_same()
        chosen = self.manifest.parameters
        self.window = chosen.window or scope.shape.window
        self.padding = Padding(chosen.padding, self.window)
        self.documents = self.windows = self.tokens = 0  # of the last pass
        self.begun = time.monotonic()

    def sums(self) -> ReplicateSums:
        """Sums over windows, whose replicates are those of the study."""
        chosen = self.manifest.parameters
        return ReplicateSums(chosen.seed, chosen.replicates, chosen.group)  # type: ignore[arg-type]

    def batches(self) -> Iterator[list[Unit]]:
        """All windows, those of one padded length together, as many as the study read at once."""
        self.documents = self.windows = self.tokens = 0
        last = b""
        self.progress.start(self.sample, 0, 0)
        budget = self.manifest.parameters.batch_tokens
        with self.progress:
            for chunk in ahead(self._chunks(CHUNK_BATCHES * budget)):
                for unit in chunk:
                    self.documents += unit.identity != last
                    last = unit.identity
                self.windows += len(chunk)
                self.tokens += sum(map(len, chunk))
                for places in batches(chunk, budget, self.padding):
                    units = [chunk[place] for place in places]
                    yield units
                    self.progress.advance(units)
        if not self.windows:
            raise NoCorpus(f"None of the {self.sample.number} documents drawn could be read.")

    def first(self, number: int) -> list[Unit]:
        """The first windows that will be read."""
        units = next(self._chunks(1 << 10), [])
        if not units:
            raise NoCorpus(f"None of the {self.sample.number} documents drawn could be read.")
        return units[:number]

    def length(self, units: list[Unit]) -> int:
        """To how many tokens the windows of a batch are padded."""
        return self.padding.length(len(units[0]))

    def finish(self, tables: "Mapping[str, pa.Table]", **parameters: Any) -> Study:
        """Add the tables to the study; `parameters` are what else decides what they say."""
        reads = {
            "limit": self.reads.limit or "all",
            "windows": self.reads.windows or "all",
            "seed": self.reads.seed,
        }
        how = described(
            self.scope,
            self.begun,
            (self.documents, self.windows, self.tokens),
            reads | parameters,
        )
        self.folder.add(self.verb.name, tables, how)
        return open_study(self.folder.path)

    def _chunks(self, most: int) -> Iterator[list[Unit]]:
        """Windows that follow each other, until they have so many tokens."""
        chosen, chunk, tokens = self.manifest.parameters, list[Unit](), 0
        tokenizer, windows = self.scope.tokenizer, self.reads.windows
        for unit in units_of(self.sample, tokenizer, self.window, chosen.language, windows):
            chunk.append(unit)
            tokens += len(unit)
            if tokens >= most:
                yield chunk
                chunk, tokens = [], 0
        if chunk:
            yield chunk

    def _check_same(self) -> None:
        """Raise unless the study is of this model, as it is now, and of this corpus."""
        said = self.manifest
        refuse_other_model(self.study, self.scope)
        if f"{self.sample.fingerprint:032x}" != said.corpus.fingerprint:
            raise OtherStudy(
                f"'{self.folder.path}' holds the study of another corpus than '{self.sample.name}' "
                f"is now: its {said.corpus.documents:,} documents are not the same.",
                command="Name its corpus, cut into documents as then (--document, --files), or "
                "another folder with --out.",
                python="Name its corpus, cut into documents as then, or another folder.",
            )


def refuse_other_model(study: Study, scope: ObservedModel) -> None:
    """Raise unless a study is of this model, as it is now."""
    said = study.manifest
    silenced = tuple(sorted(scope.silenced)) != said.silenced
    if silenced or weight_hash(scope.model) != said.model.weights:
        raise OtherStudy(
            f"'{study.path}' holds the study of {said.model.name}, which is not this model"
            + (" with these heads silenced." if silenced else ", or its weights have changed."),
            command="Name its model with --model, or another folder with --out.",
            python="Load its model, or name another folder.",
        )


def refuse_without_texts(scope: ObservedModel, said: StudiedCorpus | None) -> None:
    """Raise where a model is loaded to see or hear, or a study is of pictures or sounds."""
    _ = scope.tokenizer  # says so
    if said is not None and said.kind != "text":
        raise CannotStudy(
            f"The study of '{said.name}' is of {said.kind}s, and what is added to a study needs "
            "texts. Name the folder of a study of texts, or a new one."
        )


def described(
    scope: ObservedModel, begun: float, read: tuple[int, int, int], parameters: Mapping[str, Any]
) -> Addition:
    """How tables were made: `read` is documents, windows and tokens, `begun` a monotonic time."""
    documents, windows, tokens = read
    return Addition(
        tables=(),
        headscope=__version__,
        parameters={name: printable(str(one)) for name, one in parameters.items()},
        documents=documents,
        windows=windows,
        tokens=tokens,
        device=str(scope.model.device),
        threads=torch.get_num_threads(),
        seconds=round(time.monotonic() - begun, 3),
    )
