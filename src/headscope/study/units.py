"""Documents as a study reads them: windows of tokens, in chunks, in batches of like length.

A *unit* is one window of one document. A *chunk* is a run of units that follow each other in the
corpus, cut by their number and size alone: it is what is added to the sums at once, and where a
study can resume. Within a chunk, units of like length are read together.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

from headscope.corpus import Corpus, Document, Skipped
from headscope.errors import CannotRead
from headscope.pairs import PairTokens
from headscope.text import Tokens, tokenize, windows

CHUNK_UNITS = 256

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Unit:
    """One window of one document."""

    document: int  # number in the corpus, from 0
    identity: bytes  # of the document
    window: int  # number in the document, from 0
    source: str
    line: int | None
    tokens: Tokens
    marks: PairTokens  # the same tokens, as the pair statistics need them

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def text(self) -> str:
        """The part of the document that the window covers."""
        content = ~self.tokens.special
        first, last = self.tokens.starts[content].min(), self.tokens.ends[content].max()
        return self.tokens.text[int(first) : int(last)]

    def random(self, seed: int, purpose: str) -> np.random.Generator:
        """Random numbers that belong to this unit, whenever and wherever it is read."""
        key = blake2b(self.identity, digest_size=16, key=f"{seed} {purpose}".encode())
        key.update(self.window.to_bytes(8, "little"))
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key.digest(), "little")))


@dataclass(frozen=True, slots=True)
class Position:
    """How far into a corpus a study has come."""

    items: int = 0  # documents and failures that are done with
    windows: int = 0  # windows of the next document that are done with


BEGINNING = Position()


@dataclass(slots=True, eq=False)
class Chunk:
    """Units to be added to the sums at once, and the place after them."""

    units: list[Unit] = field(default_factory=list)
    documents: int = 0  # that began here
    fingerprint: int = 0  # sum of the identities of what was read here, as numbers
    passed: int = 0  # the same of what was passed over to get here
    skipped: list[Skipped] = field(default_factory=list)
    after: Position = BEGINNING

    @property
    def tokens(self) -> int:
        """Tokens in all units."""
        return sum(len(unit) for unit in self.units)


def pair_tokens(tokens: Tokens) -> PairTokens:
    """The tokens as the pair statistics need them: a word counts once, at its first piece."""
    continues = np.zeros(len(tokens), dtype=bool)
    continues[1:] = (tokens.words[1:] == tokens.words[:-1]) & ~tokens.special[1:]
    return PairTokens(
        sentences=tokens.sentences.astype(np.int32),
        ids=tokens.ids.astype(np.int32),
        words=np.where(continues, -1, tokens.word_types).astype(np.int32),
        special=tokens.special,
    )


def shuffled(unit: Unit, seed: int) -> Unit:
    """The unit with its tokens in random order; special tokens and sentence borders stay."""
    order = np.arange(len(unit))
    content = order[~unit.tokens.special]
    order[content] = unit.random(seed, "shuffle").permutation(content)
    moved, marks = unit.tokens.take(order), unit.marks
    return replace(
        unit,
        tokens=replace(moved, sentences=unit.tokens.sentences),
        marks=PairTokens(marks.sentences, marks.ids[order], marks.words[order], marks.special),
    )


def read_units(
    number: int, document: Document, tokenizer: Any, window: int | None, language: str
) -> list[Unit]:
    """Every window of a document; windows do not overlap, so that each token counts once."""
    tokens = tokenize(document.text, tokenizer, language=language)
    return [
        Unit(
            document=number,
            identity=document.identity,
            window=place,
            source=document.source,
            line=document.line,
            tokens=part.tokens,
            marks=pair_tokens(part.tokens),
        )
        for place, part in enumerate(windows(tokens, window))
    ]


def chunks(
    corpus: Corpus,
    tokenizer: Any,
    *,
    window: int | None,
    language: str = "en",
    chunk_tokens: int = 2**13,
    start: Position = BEGINNING,
) -> Iterator[Chunk]:
    """Cut a corpus into chunks, from a place where an earlier chunk ended.

    The last chunk comes even when it is empty, so that what was passed over can be checked.
    """
    chunk = Chunk(after=start)
    for number, item in enumerate(corpus):
        began_before = number < start.items or (number == start.items and start.windows > 0)
        if isinstance(item, Document):
            value = int.from_bytes(item.identity, "little")
            if began_before:
                chunk.passed += value
            else:
                chunk.fingerprint += value
        if number < start.items:
            continue
        units, found = _read(number, item, tokenizer, window, language)
        if found is not None:
            chunk.skipped.append(found)
            chunk.after = Position(number + 1)
        chunk.documents += bool(units) and not began_before
        for unit in units[start.windows if began_before else 0 :]:
            chunk.units.append(unit)
            last = unit.window + 1 == len(units)
            chunk.after = Position(number + 1) if last else Position(number, unit.window + 1)
            if len(chunk.units) >= CHUNK_UNITS or chunk.tokens >= chunk_tokens:
                yield chunk
                chunk = Chunk(after=chunk.after)
    yield chunk


def _read(
    number: int, item: Document | Skipped, tokenizer: Any, window: int | None, language: str
) -> tuple[list[Unit], Skipped | None]:
    """The units of a document, or why it has none."""
    if isinstance(item, Skipped):
        return [], item
    try:
        return read_units(number, item, tokenizer, window, language), None
    except CannotRead as error:
        return [], Skipped(item.source, item.line, str(error))


def batches(units: Sequence[Unit], budget: int, padding: float) -> list[list[int]]:
    """Group units (by their place in the sequence) of like length under a budget of tokens.

    No batch is padded by more than the share `padding`; 0 puts only equal lengths together. A unit
    longer than the budget is read alone.
    """
    order = sorted(range(len(units)), key=lambda place: (-len(units[place]), place))
    groups: list[list[int]] = []
    real = 0
    for place in order:
        length = len(units[place])
        if groups:
            group = groups[-1]
            size = len(units[group[0]]) * (len(group) + 1)  # once padded
            if size <= budget and real + length >= (1 - padding) * size:
                group.append(place)
                real += length
                continue
        groups.append([place])
        real = length
    return groups


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one being made while this one is used."""
    with ThreadPoolExecutor(1, "headscope-corpus") as pool:
        upcoming = pool.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = pool.submit(next, items, None)
            yield item
