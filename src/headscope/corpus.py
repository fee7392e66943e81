"""Documents from files, folders, pipes and data sets, one at a time, never the whole corpus.

A corpus can be gone over again from the start, which is how a study resumes. What cannot be read
(bad encoding, a broken line, an empty document) comes out as `Skipped`, with file and line, among
the documents, so that whoever reads decides whether to go on.
"""

import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, TypeAlias, cast

from headscope.errors import HeadscopeError

Cut: TypeAlias = Literal["file", "paragraph", "line"]
CUTS: tuple[Cut, ...] = ("file", "paragraph", "line")
PLAIN = {".txt", ".text", ".md", ".tokens", ".raw"}
PACKED = {".gz", ".xz", ".zst"}
HUB = "hf:"  # hf:NAME, hf:NAME@CONFIG, with :SPLIT behind


class NoCorpus(HeadscopeError):  # noqa: N818 - reads as a sentence
    """There is nothing to study where the corpus should be."""


@dataclass(frozen=True)
class Document:
    """One document and where it comes from."""

    text: str
    source: str  # file name, relative to the folder that was named
    line: int | None = None  # line or row where it begins, from 1; None for a whole file

    @cached_property
    def identity(self) -> bytes:
        """Sixteen bytes that only this text has, wherever it stands."""
        return blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


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


@dataclass(frozen=True)
class Corpus:
    """Where documents come from, and how they are cut.

    source: a file, a folder, "-" for standard input, "hf:NAME[@CONFIG][:SPLIT]", or any iterable
        of texts or of rows with a text column.
    cut: plain text is a document a "file", a "paragraph" (blank lines between) or a "line".
    column: the text column of .jsonl, .parquet and data sets.
    pattern: which files of a folder, such as "**/*.txt"; every readable kind by default.
    """

    source: str | Path | Iterable[Any]
    cut: Cut = "file"
    column: str = "text"
    pattern: str | None = None

    def __post_init__(self) -> None:
        if self.cut not in CUTS:
            raise NoCorpus(f"a document is a {', a '.join(CUTS)}, not a {self.cut!r}")

    @property
    def name(self) -> str:
        """What a person calls it; without folders, so that it says nothing of the machine."""
        if isinstance(self.source, str) and (self.source == "-" or self.source.startswith(HUB)):
            return "standard input" if self.source == "-" else self.source
        if isinstance(self.source, str | Path):
            return Path(self.source).resolve().name
        return type(self.source).__name__

    def __iter__(self) -> Found:
        """Every document in a fixed order, and every failure where it was met."""
        source = self.source
        if not isinstance(source, str | Path):
            yield from _rows(source, self.name, self.column)
        elif str(source) == "-":
            yield from _plain(sys.stdin.buffer, self.name, self.cut)
        elif str(source).startswith(HUB):
            yield from _rows(_hub_rows(str(source)), str(source), self.column)
        else:
            for path, name in _files(Path(source), self.pattern):
                yield from _file(path, name, self.cut, self.column)


def _files(root: Path, pattern: str | None) -> Iterator[tuple[Path, str]]:
    if root.is_file():
        yield root, root.name
        return
    if not root.is_dir():
        raise NoCorpus(
            f"There is no file or folder '{root}'. Name a .txt, .jsonl or .parquet file (also .gz, "
            ".xz, .zst), a folder of them, or - for standard input."
        )
    paths = sorted(path for path in root.glob(pattern or "**/*") if path.is_file())
    if pattern is None:
        paths = [path for path in paths if _kind(path) is not None]
    if not paths:
        wanted = f"that fits '{pattern}'" if pattern else "that can be read as text"
        raise NoCorpus(f"The folder '{root}' holds no file {wanted}: .txt, .jsonl or .parquet.")
    for path in paths:
        yield path, str(PurePosixPath(path.relative_to(root)))


def _kind(path: Path) -> str | None:
    """How a file is read: "text", "jsonl" or "parquet"; None for what is no text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in (".jsonl", ".ndjson"):
        return "jsonl"
    return "parquet" if last == ".parquet" else "text" if last in PLAIN else None


def _file(path: Path, name: str, cut: Cut, column: str) -> Found:
    try:
        match _kind(path):
            case "parquet":
                yield from _parquet(path, name, column)
            case "jsonl":
                with _opened(path) as stream:
                    yield from _jsonl(stream, name, column)
            case _:
                with _opened(path) as stream:
                    yield from _plain(stream, name, cut)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        yield Skipped(name, None, f"cannot be read to the end: {error}")


def _opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked as its name says."""
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".xz":
            return lzma.open(path)
        case ".zst":
            import io

            import pyarrow as pa

            return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
        case _:
            return path.open("rb")


def _plain(stream: IO[bytes], name: str, cut: Cut) -> Found:
    """Documents of plain text; a document with a line that is no UTF-8 is skipped."""
    if cut == "file":
        yield _decoded(stream.read(), name, None)
        return
    lines: list[bytes] = []
    start, number = 1, 0
    for number, line in enumerate(stream, 1):
        if cut == "line":
            if line.strip():
                yield _decoded(line, name, number)
        elif line.strip():
            start = start if lines else number
            lines.append(line)
        elif lines:
            yield _decoded(b"".join(lines), name, start)
            lines = []
    if lines:
        yield _decoded(b"".join(lines), name, start)
    if number == 0:
        yield Skipped(name, None, "empty")


def _decoded(data: bytes, name: str, line: int | None) -> Document | Skipped:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = data[: error.start].count(b"\n") + (line or 1)
        return Skipped(name, at, f"not UTF-8: byte {data[error.start]:#04x}")
    return _checked(text if line is None else text.strip(), name, line)


def _checked(
    text: Any, name: str, line: int | None, column: str | None = None
) -> Document | Skipped:
    if not isinstance(text, str):
        found = "nothing" if text is None else type(text).__name__
        return Skipped(name, line, f"no text in column '{column}' but {found}")
    if not text.strip():
        return Skipped(name, line, "empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Skipped(name, line, "half of a surrogate pair, which is no character")
    return Document(text, name, line)


def _jsonl(stream: IO[bytes], name: str, column: str) -> Found:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            yield Skipped(name, number, f"not UTF-8: byte {line[error.start]:#04x}")
        except (json.JSONDecodeError, RecursionError) as error:
            yield Skipped(name, number, f"broken JSON: {error}")
        else:
            yield _row(row, name, number, column)


def _row(row: Any, name: str, number: int, column: str) -> Document | Skipped:
    text = row.get(column) if hasattr(row, "get") else row
    return _checked(text, name, number, column)


def _rows(rows: Iterable[Any], name: str, column: str) -> Found:
    for number, row in enumerate(rows, 1):
        yield _row(row, name, number, column)


def _parquet(path: Path, name: str, column: str) -> Found:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                there = ", ".join(file.schema_arrow.names)
                yield Skipped(name, None, f"no column '{column}'; there are: {there}")
                return
            number = 0
            for batch in file.iter_batches(batch_size=256, columns=[column]):
                for value in batch.column(0):
                    number += 1
                    yield _checked(value.as_py(), name, number, column)
    except pa.ArrowException as error:
        yield Skipped(name, None, f"no Parquet that can be read: {error}")


def _hub_rows(source: str) -> Iterable[Any]:
    name, _, split = source.removeprefix(HUB).partition(":")
    name, _, config = name.partition("@")
    try:
        import datasets  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise NoCorpus(
            f"'{source}' is a Hugging Face data set, which needs one more package: "
            "pip install 'headscope[datasets]'"
        ) from None
    try:
        rows: Iterable[Any] = datasets.load_dataset(
            name, config or None, split=split or "train", streaming=True
        )
    except (OSError, ValueError) as error:  # nothing there, no network, no such config or split
        said = str(error).splitlines()[0]
        raise NoCorpus(
            f"'{source}' cannot be opened ({said}). A data set is hf:NAME, hf:NAME@CONFIG, with "
            ":SPLIT behind; without a network it is a local folder or what was loaded before."
        ) from error
    return rows
