"""Documents out of the bytes of a file: plain text, JSON lines and Parquet, in bounded memory.

A document too long to be read at once comes in parts. What is no text (bad encoding, a broken
line, an empty document) comes out as `Skipped`, with file and line, where it was met.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

Cut: TypeAlias = Literal["file", "paragraph", "line"]

PART = 2**19  # most characters of a document that are read at once
ROW = 2**24  # most bytes of a row of JSON or Parquet
BLOCK = 2**18  # bytes taken from a file at once
UNPACKED = 2**29  # most bytes of a column of a Parquet row group, where it packs a hundredfold
SOMETHING = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Document:
    """One document, or one part of a long one, and where it comes from."""

    text: str
    source: str  # file name, relative to the folder that was named
    line: int | None = None  # line or row where it begins, from 1; None for a whole file
    part: int = 0  # from 0
    first: bytes | None = None  # content of the first part, in the parts after it

    @cached_property
    def content(self) -> bytes:
        """Sixteen bytes that only this text has, wherever it stands."""
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @property
    def identity(self) -> bytes:
        """Sixteen bytes that all parts of a document have in common."""
        return self.first or self.content


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that should have been a document and could not be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}, line {self.line}"
        return f"{where}: {self.reason}"


Found: TypeAlias = Iterator[Document | Skipped]


def plain(stream: IO[bytes], name: str, cut: Cut) -> Found:
    """Documents of plain text; one with a line that is no UTF-8 is skipped."""
    making = _Making(name, cut)
    empty = True
    for line in _lines(stream):
        empty = False
        if cut != "file" and line.blank:
            yield from making.end()
            continue
        yield from making.add(line)
        if line.ends and cut == "line":
            yield from making.end()
    yield from making.end()
    if empty:
        yield Skipped(name, None, "empty")


def jsonl(stream: IO[bytes], name: str, column: str) -> Found:
    """The text column of every line."""
    number = 0
    while line := stream.readline(ROW + 1):
        number += 1
        if len(line) > ROW:
            while line and not line.endswith(b"\n"):
                line = stream.readline(BLOCK)
            yield Skipped(name, number, f"a line of more than {ROW >> 20} MiB; split it up")
        elif line.strip():
            yield from _json_row(line, name, number, column)


def _json_row(line: bytes, name: str, number: int, column: str) -> Found:
    try:
        # Numbers are no text, and need not be read; of thousands of digits they cannot be.
        value = json.loads(line.decode("utf-8-sig"), parse_int=_nothing, parse_float=_nothing)
    except UnicodeDecodeError as error:
        yield Skipped(name, number, not_utf8(error))
    except (ValueError, RecursionError) as error:
        yield Skipped(name, number, f"broken JSON: {error}")
    else:
        yield from row(value, name, number, column)


def _nothing(_: str) -> int:
    return 0


def row(value: Any, name: str, number: int, column: str) -> Found:
    """The text of a row that came as a mapping, or is the text itself."""
    text = value.get(column) if hasattr(value, "get") else value
    if isinstance(text, str):
        yield from texts(text, name, number)
    else:
        found = "nothing" if text is None else type(text).__name__
        yield Skipped(name, number, f"no text in column '{column}' but {found}")


def parquet(path: Path | IO[bytes], name: str, column: str) -> Found:
    """The text column of every row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        about = pq.read_metadata(path)
        if (reason := _no_text_column(about.schema.to_arrow_schema(), column)) is not None:
            yield Skipped(name, None, reason)
            return
        with pq.ParquetFile(path, metadata=about, read_dictionary=[column]) as file:
            for group in range(about.num_row_groups):
                if (reason := _bomb(about.row_group(group), column)) is not None:
                    yield Skipped(name, number + 1, reason)
                    number += about.row_group(group).num_rows
                    continue
                for batch in file.iter_batches(256, row_groups=[group], columns=[column]):
                    for value in batch.column(0):
                        number += 1
                        yield from _parquet_row(value, name, number, column)
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Skipped(name, number + 1 if number else None, f"no Parquet that can be read: {error}")


def _no_text_column(schema: Any, column: str) -> str | None:
    import pyarrow.types as kinds

    if column not in schema.names:
        return f"no column '{column}'; there are: {', '.join(schema.names)[:200]}"
    kind = schema.field(column).type
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return None
    return f"column '{column}' holds {kind}, no text"


def _bomb(group: Any, column: str) -> str | None:
    """Why a row group is not unpacked."""
    for place in range(group.num_columns):
        about = group.column(place)
        packed, unpacked = about.total_compressed_size, about.total_uncompressed_size
        if about.path_in_schema == column and unpacked > max(UNPACKED, 100 * packed):
            return f"{group.num_rows:,} rows that unpack to {unpacked >> 20:,} MiB"
    return None


def _parquet_row(value: Any, name: str, number: int, column: str) -> Found:
    held = value.value if hasattr(value, "dictionary") else value  # a scalar of a dictionary
    if held.is_valid and len(held.as_buffer()) > ROW:
        yield Skipped(name, number, f"a text of more than {ROW >> 20} MiB; split it up")
        return
    try:
        text = held.as_py()
    except UnicodeDecodeError as error:
        yield Skipped(name, number, not_utf8(error))
    else:
        yield from row(text, name, number, column)


def texts(text: str, name: str, number: int) -> Found:
    """The text of a row as a document, or as its parts."""
    making = _Making(name, "row")
    yield from making.add(_Line(number, text))
    yield from making.end()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a file, or a piece of a long one."""

    number: int
    text: str
    begins: bool = True
    ends: bool = True
    reason: str | None = None  # why it is no text

    @property
    def blank(self) -> bool:
        """Whether nothing stands on the line."""
        return self.begins and self.ends and self.reason is None and not self.text.strip()


def _lines(stream: IO[bytes]) -> Iterator[_Line]:
    """Every line of UTF-8, long ones in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number, begins = 1, True
    while data := stream.readline(BLOCK):
        first, ends = number == 1 and begins, data.endswith(b"\n")
        bare = data.removeprefix(codecs.BOM_UTF8) if first else data
        try:
            yield _Line(number, decoder.decode(bare, final=ends), begins, ends)
        except UnicodeDecodeError as error:
            decoder.reset()
            yield _Line(number, "", begins, ends, not_utf8(error, first))
        begins, number = ends, number + ends
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        yield _Line(number, "", False, True, not_utf8(error))


@dataclass(slots=True)
class _Making:
    """A document that lines are added to, and that comes out in parts of bounded size."""

    name: str
    kind: Cut | Literal["row"]
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    line: int = 0  # where the part begins
    part: int = 0
    first: bytes | None = None
    wrong: Skipped | None = None

    def add(self, line: _Line) -> Found:
        """Take a line in; gives the parts that are full."""
        if not self.pieces:
            self.line = line.number
        if line.reason is not None and self.wrong is None:
            self.wrong = Skipped(self.name, line.number, line.reason)
        self.pieces.append(line.text)
        self.size += len(line.text)
        while self.size > PART:
            text = "".join(self.pieces)
            place = _place_to_cut(text)
            yield self._made(text[:place])
            if self.kind != "row":
                self.line += text.count("\n", 0, place)
            self.pieces, self.size = [text[place:]], len(text) - place

    def end(self) -> Found:
        """The document, or the last part of it; what is added then is another."""
        if self.pieces and (self.part == 0 or self.wrong or SOMETHING.search("".join(self.pieces))):
            yield self._made("".join(self.pieces))
        self.pieces, self.size, self.part, self.first = [], 0, 0, None

    def _made(self, text: str) -> Document | Skipped:
        line = None if self.kind == "file" and self.part == 0 else self.line
        if self.kind in ("paragraph", "line"):
            text = text.strip()
        wrong, self.wrong = self.wrong, None
        reason = None if wrong else _why_no_text(text)
        made = Document(text, self.name, line, self.part, self.first)
        self.part += 1
        self.first = made.identity
        return wrong or (Skipped(self.name, line, reason) if reason else made)


def _place_to_cut(text: str) -> int:
    """Where a text is cut that is too long: between paragraphs, lines or words, if it can be."""
    for border in ("\n\n", "\n", " "):
        place = text.rfind(border, PART // 2, PART)
        if place > 0:
            return place + len(border)
    return PART


def _why_no_text(text: str) -> str | None:
    if not SOMETHING.search(text):
        return "empty" if not text.strip() else "nothing but control characters"
    if zeros(text):
        return ZEROS
    try:
        text.encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair, which is no character"
    return None


def zeros(text: str) -> bool:
    """Whether a fifth of a text are zero bytes, as where UTF-16 was read as UTF-8."""
    return 5 * text.count("\0") > len(text)


ZEROS = (
    "full of zero bytes, as UTF-16 or a file that is no text; if it is UTF-16, convert it: "
    "iconv -f utf-16le -t utf-8"
)


def not_utf8(error: UnicodeDecodeError, beginning: bool = True) -> str:
    """What is wrong with bytes that are no UTF-8, and what to do."""
    data = error.object
    if beginning and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16, not UTF-8; convert it: iconv -f utf-16 -t utf-8"
    return (
        f"not UTF-8: byte {data[error.start]:#04x}; "
        "if it is Latin-1, convert it: iconv -f latin1 -t utf-8"
    )
