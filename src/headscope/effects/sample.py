"""Which documents of a corpus a verb reads: as many as were asked for, drawn by the seed.

A document is drawn by a hash of the seed and its own text, never by its place, so the same ones are
read whatever the order of the corpus. It is gone over once before, without a model: to draw, and to
see that it is the corpus of the study.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from headscope.corpus import Corpus, Cut, Document
from headscope.errors import CannotRead, NotPossible
from headscope.study.manifest import StudiedCorpus
from headscope.units import Unit, read_units

LIMIT, WINDOWS = 200, 8


@dataclass(frozen=True, slots=True)
class Reads:
    """What of a corpus is read; how it is cut into documents is as in the study unless given."""

    document: Cut | None = None
    column: str | None = None
    files: str | None = None
    limit: int = LIMIT  # documents; 0: all of them
    windows: int = WINDOWS  # of a document, spread evenly from its first on; 0: all of them
    seed: int = 0  # of which documents these are, and of whatever else is drawn

    def __post_init__(self) -> None:
        for name, most in (("limit", 2**40), ("windows", 2**40), ("seed", 2**63 - 1)):
            if not 0 <= getattr(self, name) <= most:
                raise NotPossible(f"{name} has to be a number from 0 to {most:,}.")

    def corpus(self, source: "str | Path | Iterable[Any]", said: StudiedCorpus | None) -> Corpus:
        """The corpus, cut into documents as in the study, where there is one."""
        document, column = ("file", "text") if said is None else (said.document, said.column)
        files = self.files or (said.files if said else None)
        return Corpus(source, self.document or document, self.column or column, files)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sample(Corpus):
    """Some documents of a corpus; what could not be read is passed over, as in the study."""

    most: int = 2**128  # the largest key of a document that is drawn
    number: int = 0  # of documents
    seed: int = 0
    fingerprint: int = 0  # of the whole corpus

    @property
    def documents(self) -> int | None:
        """How many there are."""
        return self.number

    def __iter__(self) -> Iterator[Document]:
        """Every document that was drawn, in the order of the corpus."""
        for item in super().__iter__():
            if isinstance(item, Document) and _key(item, self.seed) <= self.most:
                yield item


def draw(corpus: Corpus, limit: int, seed: int) -> Sample:
    """Go over a corpus and draw `limit` of its documents."""
    if corpus.source == "-" or isinstance(corpus.source, Iterator):
        raise CannotRead(
            "The corpus is gone over more than once here, and this one can be read only once. "
            "Write it to a file, and name that."
        )
    total, kept, known, whole = 0, list[int](), set[int](), 0
    for item in Corpus.__iter__(corpus):
        if not isinstance(item, Document):
            continue
        total += int.from_bytes(item.content, "little")
        whole += item.part == 0
        key = _key(item, seed)
        if not limit or key in known or (len(kept) == limit and key >= -kept[0]):
            continue
        known.add(key)
        heapq.heappush(kept, -key)
        if len(kept) > limit:
            known.discard(-heapq.heappop(kept))
    most = -kept[0] if len(kept) == limit and limit else 2**128
    return Sample(
        corpus.source,
        corpus.document,
        corpus.column,
        corpus.files,
        most,
        len(kept) if limit else whole,
        seed,
        total % 2**128,
    )


def units_of(
    sample: Sample, tokenizer: Any, window: int | None, language: str, windows: int
) -> Iterator[Unit]:
    """The windows of the documents that were drawn; of a long one some, spread evenly."""
    for number, document in enumerate(sample):
        try:
            units = read_units(number, document, tokenizer, window, language)
        except CannotRead:
            continue  # the study has told of it
        if windows and len(units) > windows:
            units = [units[place * len(units) // windows] for place in range(windows)]
        yield from units


def _key(document: Document, seed: int) -> int:
    key = blake2b(document.identity, digest_size=16, key=f"{seed} sample".encode())
    return int.from_bytes(key.digest(), "little")
