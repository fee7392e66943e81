"""Documents from files, folders, pipes and data sets, one at a time, never the whole corpus.

A corpus can be gone over again from the start, which is how a study resumes. What cannot be read
comes out as `Skipped` among the documents, so that whoever reads decides whether to go on.
"""

import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from headscope.documents import Cut, Document, Found, Skipped, jsonl, parquet, plain, row
from headscope.errors import CannotRead, NoCorpus
from headscope.stores import Stored, is_url, said, stored_files, url_name

__all__ = ["Corpus", "Cut", "Document", "NoCorpus", "Skipped"]

CUTS: tuple[Cut, ...] = ("file", "paragraph", "line")
PLAIN = {".txt", ".text", ".md", ".tokens", ".raw"}
PACKED = {".gz", ".xz", ".zst"}
HUB = "hf:"  # hf:NAME, hf:NAME@CONFIG, with :SPLIT behind


@dataclass(frozen=True)
class Corpus:
    """Where documents come from, and how they are cut.

    source: a file, a folder, a URL of either (s3://…), "-" for standard input, a data set of the
        hub (hf:NAME or hf:NAME@CONFIG, with :SPLIT behind), or any iterable of texts or of rows
        with a text column.
    document: plain text is a document a "file", a "paragraph" (blank lines between) or a "line".
    column: the text column of .jsonl, .parquet and data sets.
    files: which files of a folder, such as "**/*.txt"; every readable kind by default.
    """

    source: str | Path | Iterable[Any]
    document: Cut = "file"
    column: str = "text"
    files: str | None = None

    def __post_init__(self) -> None:
        if self.document not in CUTS:
            raise NoCorpus(f"a document is a {', a '.join(CUTS)}, not a {self.document!r}")
        if not isinstance(self.source, str | Path | Iterable):
            raise NoCorpus(
                f"A corpus is a path or a list of texts, not {type(self.source).__name__}."
            )

    @property
    def name(self) -> str:
        """What a person calls it; without folders, so that it says nothing of the machine."""
        if isinstance(self.source, str) and (self.source == "-" or self.source.startswith(HUB)):
            return "standard input" if self.source == "-" else printable(self.source)
        if is_url(self.source):
            return printable(url_name(str(self.source)))
        if isinstance(self.source, str | Path):
            return printable(Path(os.path.abspath(self.source)).name or "/")
        return type(self.source).__name__

    @property
    def documents(self) -> int | None:
        """How many there are, where that is known before they are read."""
        if isinstance(self.source, str | Path) or not isinstance(self.source, Sized):
            return None
        return len(self.source)

    @property
    def has_parts(self) -> bool:
        """Whether its documents are parts of several files: paragraphs or lines of a folder's.

        Those of one file are alike, so that what is said of another file varies more than they do.
        """
        if self.document == "file" or not isinstance(self.source, str | Path):
            return False
        if not is_url(self.source) and not os.path.isdir(self.source):
            return False  # of one file there is nothing wider
        return sum(1 for _ in islice(_places(str(self.source), self.files), 2)) > 1

    def __iter__(self) -> Found:
        """Every document in a fixed order, and every failure where it was met."""
        source = self.source
        if not isinstance(source, str | Path):
            yield from _rows(source, self.name, self.column)
        elif str(source) == "-":
            yield from plain(sys.stdin.buffer, self.name, self.document)
        elif str(source).startswith(HUB):
            yield from _rows(_hub_rows(str(source)), str(source), self.column)
        else:
            for path, name in _places(str(source), self.files):
                yield from _file(path, name, self.document, self.column)


def printable(name: str) -> str:
    """A name from the file system as UTF-8 can hold it: bytes that are none as \\xe9."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _places(source: str, pattern: str | None) -> Iterator[tuple[Path | Stored, str]]:
    """Every file that is to be read, and its name."""
    if not is_url(source):
        yield from _files(Path(source), pattern)
        return
    there = False
    for path, name in stored_files(source, pattern):
        if pattern is not None or _kind(path) is not None:
            there = True
            yield path, printable(name)
    if not there:
        raise NoCorpus(
            f"There is no file at '{url_name(source)}' that "
            f"{'fits ' + repr(pattern) if pattern else 'can be read as text'}: .txt, .jsonl or "
            ".parquet (also .gz, .xz, .zst)."
        )


def _files(root: Path, pattern: str | None) -> Iterator[tuple[Path, str]]:
    if os.path.isfile(root):  # says no, where Path would raise: of a name that is too long
        yield root, printable(root.name)
        return
    if not os.path.isdir(root):
        raise NoCorpus(
            f"There is no file or folder '{str(root)[:200]}'. Name a .txt, .jsonl or .parquet "
            "file (also .gz, .xz, .zst), a folder of them, or - for standard input."
        )
    if pattern is not None and ".." in Path(pattern).parts:
        raise NoCorpus(f"'{pattern}' leads out of the folder '{root}'; write it without '..'.")
    try:
        paths = sorted(path for path in root.glob(pattern or "**/*") if path.is_file())
    except (ValueError, NotImplementedError) as error:
        raise NoCorpus(f"'{pattern}' is no pattern of files, such as '**/*.txt': {error}") from None
    except OSError as error:
        raise NoCorpus(f"The folder '{root}' cannot be listed: {error}") from None
    if pattern is None:
        paths = [path for path in paths if _kind(path) is not None]
    if not paths:
        wanted = f"that fits '{pattern}'" if pattern else "that can be read as text"
        raise NoCorpus(f"The folder '{root}' holds no file {wanted}: .txt, .jsonl or .parquet.")
    for path in paths:
        yield path, printable(str(PurePosixPath(path.relative_to(root))))


def _kind(path: Path | Stored) -> str | None:
    """How a file is read: "text", "jsonl" or "parquet"; None for what is no text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in (".jsonl", ".ndjson"):
        return "jsonl"
    return "parquet" if last == ".parquet" else "text" if last in PLAIN else None


def _file(path: Path | Stored, name: str, cut: Cut, column: str) -> Found:
    try:
        match _kind(path):
            case "parquet" if isinstance(path, Path):
                yield from parquet(path, name, column)
            case "parquet":
                with path.open("rb") as stream:
                    yield from parquet(stream, name, column)
            case "jsonl":
                with opened(path) as stream:
                    yield from jsonl(stream, name, column)
            case _:
                with opened(path) as stream:
                    yield from plain(stream, name, cut)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        yield Skipped(name, None, f"cannot be read to the end: {error}")
    except Exception as error:
        if isinstance(path, Stored):  # a store that does not answer is no fault of the file
            raise CannotRead(
                f"{name} cannot be read to the end ({said(error)}). When it can, the same command "
                "goes on."
            ) from error
        if not isinstance(error, OSError):
            raise
        yield Skipped(name, None, f"cannot be read to the end: {error}")


@contextmanager
def opened(path: Path | Stored) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked as its name says."""
    with path.open("rb") as stream:
        match path.suffix.lower():
            case ".gz":
                with gzip.open(stream) as unpacked:
                    yield cast(IO[bytes], unpacked)
            case ".xz":
                with lzma.open(stream) as unpacked:
                    yield unpacked
            case ".zst":
                import io

                import pyarrow as pa

                yield io.BufferedReader(pa.input_stream(stream, compression="zstd"))
            case _:
                yield stream


def _rows(rows: Iterable[Any], name: str, column: str) -> Found:
    for number, one in enumerate(rows, 1):
        yield from row(one, name, number, column)


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
