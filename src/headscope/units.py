"""Documents as a study reads them: windows of tokens, in chunks, in batches of like length.

A *unit* is one window of one document. A *chunk* is a run of units that follow each other in the
corpus, cut by their number and size alone: it is what is added to the sums at once, and where a
study can resume. Within a chunk, units of like length are read together.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headscope.corpus import Corpus, Document, Skipped
from headscope.errors import CannotRead
from headscope.pairs import PairTokens
from headscope.text import Tokens, tokenize, windows

CHUNK_UNITS = 256
LISTED = 1000  # failures that are told one by one; a corpus may have millions

PATIENCE = 0.1  # seconds between looks at whether to stop

T = TypeVar("T")

# The numbers of `Tokens`, one a token, and of equal words.
NUMBERS = ("ids", "starts", "ends", "words", "word_classes", "sentences", "classes", "word_types")


@dataclass(frozen=True, eq=False)
class Unit:
    """One window of one document."""

    document: int  # number in the corpus, from 0
    identity: bytes  # of the document
    window: int  # number in the part of the document, from 0
    source: str
    line: int | None
    tokens: Tokens
    marks: PairTokens  # the same tokens, as the pair statistics need them
    part: int = 0  # of a document too long to be read at once
    known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def __reduce__(self) -> tuple[Callable[..., "Unit"], tuple[Any, ...]]:
        """As one array of numbers and few strings: a hundred small objects take long to read."""
        tokens = self.tokens
        numbers = np.empty((len(NUMBERS) + 1, len(self)), np.int32)
        for row, name in zip(numbers, NUMBERS, strict=False):
            row[:] = getattr(tokens, name)
        numbers[-1] = 2 * tokens.unknown + tokens.special
        spelled = tokens.spelled
        if not isinstance(spelled, str):
            joined = "\0".join(spelled)
            spelled = joined if joined.count("\0") < len(self) else spelled  # a symbol has one
        where = (self.document, self.identity, self.window, self.source, self.line)
        known = dict(self.known)  # which another thread may add to
        return _unit_of, (where, self.part, tokens.text, spelled, tokens.word_spans, numbers, known)

    @property
    def text(self) -> str:
        """The part of the document that the window covers."""
        content = ~self.tokens.special
        first, last = self.tokens.starts[content].min(), self.tokens.ends[content].max()
        return self.tokens.text[int(first) : int(last)]

    def random(self, seed: int, purpose: str) -> np.random.Generator:
        """Random numbers that belong to this unit, whenever and wherever it is read."""
        key = blake2b(self.identity, digest_size=16, key=f"{seed} {purpose}".encode())
        key.update((self.part << 32 | self.window).to_bytes(8, "little"))
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key.digest(), "little")))

    def priority(self, seed: int, purpose: str) -> int:
        """A random number of this unit, by which a few are chosen: those with the smallest."""
        return self.remember(
            ("priority", seed, purpose), lambda: int(self.random(seed, purpose).integers(2**62))
        )

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave the first time it was asked for under this key: of this unit alone."""
        if key not in self.known:
            self.known[key] = make()
        return cast(T, self.known[key])


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
    failures: int = 0
    skipped: list[Skipped] = field(default_factory=list)  # the first of the failures
    after: Position = BEGINNING

    @property
    def tokens(self) -> int:
        """Tokens in all units."""
        return sum(len(unit) for unit in self.units)


def pair_tokens(tokens: Tokens) -> PairTokens:
    """The tokens as the pair statistics need them."""
    return PairTokens(
        sentences=tokens.sentences.astype(np.int32),
        ids=tokens.ids.astype(np.int32),
        words=tokens.word_types.astype(np.int32),
        occurrences=tokens.words.astype(np.int32),
        word_classes=tokens.word_classes.astype(np.int32),
        special=tokens.special,
    )


def _unit_of(
    where: tuple[int, bytes, int, str, int | None],
    part: int,
    text: str,
    spelled: tuple[str, ...] | str,
    word_spans: NDArray[np.int64],
    numbers: NDArray[np.int32],
    known: dict[Hashable, Any],
) -> Unit:
    """A unit from its pickle."""
    own = dict(zip(NUMBERS, numbers.astype(np.int64), strict=False))
    word_types = own.pop("word_types")
    tokens = Tokens(
        text=text,
        spelled=spelled,
        word_spans=word_spans,
        special=numbers[-1] % 2 > 0,
        unknown=numbers[-1] > 1,
        **own,
    )
    vars(tokens)["word_types"] = word_types  # which took long to find
    unit = Unit(*where, tokens, pair_tokens(tokens), part)
    unit.known.update(known)
    return unit


def shuffled(unit: Unit, seed: int) -> Unit:
    """The unit with its tokens in random order; special tokens and sentence borders stay."""
    order = np.arange(len(unit))
    content = order[~unit.tokens.special]
    order[content] = unit.random(seed, "shuffle").permutation(content)
    moved = replace(unit.tokens.take(order), sentences=unit.tokens.sentences)
    return replace(unit, tokens=moved, marks=pair_tokens(moved))


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
            part=document.part,
        )
        for place, part in enumerate(windows(tokens, window))
    ]


Item: TypeAlias = tuple[int, Document | Skipped]  # with its number in the corpus
Units: TypeAlias = tuple[list[Unit], Skipped | None]
Through: TypeAlias = Callable[[Callable[[Item], Units], Iterator[Item]], Iterator[Units]]


def in_turn(read: Callable[[Item], Units], items: Iterator[Item]) -> Iterator[Units]:
    """Read one document after the other."""
    return map(read, items)


def chunks(
    corpus: Corpus,
    tokenizer: Any,
    *,
    window: int | None,
    language: str = "en",
    chunk_tokens: int = 2**13,
    start: Position = BEGINNING,
    through: Through = in_turn,
) -> Iterator[Chunk]:
    """Cut a corpus into chunks, from a place where an earlier chunk ended.

    The last chunk comes even when it is empty, so that what was passed over can be checked. Who
    reads documents elsewhere passes them `through` there, and gives their units back in order.
    """
    passed, waiting = 0, deque[Item]()

    def to_read() -> Iterator[Item]:
        nonlocal passed
        for item in enumerate(corpus):
            if item[0] < start.items:
                passed += _content(item)
            else:
                waiting.append(item)
                yield item

    read = partial(_read, tokenizer=tokenizer, window=window, language=language)
    chunk, tokens = Chunk(after=start), 0
    for units, found in through(read, to_read()):
        number, _ = item = waiting.popleft()
        began_before = number == start.items and start.windows > 0
        if began_before:
            passed += _content(item)
        else:
            chunk.fingerprint += _content(item)
        if found is not None:
            chunk.failures += 1
            chunk.after = Position(number + 1)
            if len(chunk.skipped) < LISTED:
                chunk.skipped.append(found)
        chunk.documents += bool(units) and not began_before and units[0].part == 0
        for unit in units[start.windows if began_before else 0 :]:
            chunk.units.append(unit)
            tokens += len(unit)
            last = unit.window + 1 == len(units)
            chunk.after = Position(number + 1) if last else Position(number, unit.window + 1)
            if len(chunk.units) >= CHUNK_UNITS or tokens >= chunk_tokens:
                chunk.passed, passed = passed, 0
                yield chunk
                chunk, tokens = Chunk(after=chunk.after), 0
    chunk.passed = passed
    yield chunk


def _content(item: Item) -> int:
    """The identity of what was read, as a number."""
    found = item[1]
    return int.from_bytes(found.content, "little") if isinstance(found, Document) else 0


def fingerprint(corpus: Corpus) -> int:
    """The sum of the identities of all documents, as numbers: a name for the corpus."""
    documents = (item for item in corpus if isinstance(item, Document))
    return sum(int.from_bytes(one.content, "little") for one in documents) % 2**128


def _read(item: Item, tokenizer: Any, window: int | None, language: str) -> Units:
    """The units of a document, or why it has none."""
    number, found = item
    if isinstance(found, Skipped):
        return [], found
    try:
        return read_units(number, found, tokenizer, window, language), None
    except CannotRead as error:
        return [], Skipped(found.source, found.line, str(error))


@dataclass(frozen=True, slots=True)
class Padding:
    """To how many tokens a unit is padded: by its own length alone, whatever it is read with.

    Numbers of a text then do not depend on what else is in a corpus, or in which order: a product
    of matrices rounds by their shape, and with another number of tokens otherwise.
    """

    share: float = 0.0  # most padding of a unit; 0 for none at all
    window: int | None = None  # no unit is padded beyond it

    def length(self, tokens: int) -> int:
        """The length of a class of lengths, a multiple of a power of two."""
        step = 1
        while 2 * step <= self.share * tokens:
            step *= 2
        padded = -(-tokens // step) * step
        return padded if self.window is None else max(tokens, min(padded, self.window))


def batches(units: Sequence[Unit], budget: int, padding: Padding) -> list[list[int]]:
    """Group units (by their place in the sequence) of one padded length under a budget of tokens.

    Those that need no padding are read apart, without a mask. A unit longer than the budget is
    read alone.
    """
    classes: dict[tuple[int, bool], list[int]] = {}
    for place, unit in enumerate(units):
        padded = padding.length(len(unit))
        classes.setdefault((padded, padded > len(unit)), []).append(place)
    found = []
    for (padded, _), places in sorted(classes.items(), reverse=True):
        number = max(1, budget // padded)
        found += [places[at : at + number] for at in range(0, len(places), number)]
    return found


def ahead(items: Iterator[T], stopped: Callable[[], bool] = lambda: False) -> Iterator[T]:
    """The same items, the next one being made while this one is used; none once it is stopped.

    The thread that makes them is not waited for: it may be reading from somebody slow.
    """
    made: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(1)
    ended = threading.Event()

    def put(item: T | None, error: BaseException | None = None) -> None:
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                made.put((item, error), timeout=PATIENCE)
                return

    def make() -> None:
        try:
            for item in items:
                put(item)
                if ended.is_set():
                    return
            put(None)
        except BaseException as error:  # is raised where the items are used
            put(None, error)

    threading.Thread(target=make, name="headscope-corpus", daemon=True).start()
    try:
        while not stopped():
            try:
                item, error = made.get(timeout=PATIENCE)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        ended.set()


def padded(rows: Sequence[NDArray[Any]], length: int, fill: int | bool) -> NDArray[Any]:
    """Rows of one length, filled behind their own ends."""
    found = np.full((len(rows), length), fill, rows[0].dtype)
    for own, row in zip(found, rows, strict=True):
        own[: len(row)] = row
    return found
