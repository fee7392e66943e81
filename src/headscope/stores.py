"""Files by URL: s3://, gs://, https://, memory:// and whatever else fsspec or pyarrow can open.

What a URL needs beyond both, such as s3fs, is named where it is missing. Credentials are found as
those libraries find them; none is asked for, kept or shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from headscope.errors import NoCorpus

URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True)
class Stored:
    """A file in a store; has of a path what reading needs."""

    store: Any  # an fsspec file system
    path: str

    @property
    def suffixes(self) -> list[str]:
        """As of a path."""
        return PurePosixPath(self.path).suffixes

    @property
    def suffix(self) -> str:
        """As of a path."""
        return PurePosixPath(self.path).suffix

    def open(self, mode: str) -> IO[bytes]:
        """Its bytes."""
        return cast(IO[bytes], self.store.open(self.path, mode))


def is_url(source: object) -> bool:
    """Whether a corpus is named by a URL."""
    return isinstance(source, str) and URL.match(source) is not None


def url_name(url: str) -> str:
    """The last part of a URL, without what may be secret in it."""
    return URL.sub("", url).partition("?")[0].rstrip("/").rpartition("/")[2] or "/"


def stored_files(url: str, pattern: str | None) -> Iterator[tuple[Path | Stored, str]]:
    """The file at a URL, or every file below it in the order of their names."""
    store, root = _store(url)
    name = url_name(url)
    try:
        if store.isfile(root):
            found, below = [root], root.rpartition("/")[0]
        else:
            below = root.rstrip("/")
            found = sorted(store.glob(f"{below}/{pattern}") if pattern else store.find(root))
            found = [path for path in found if store.isfile(path)] if pattern else found
    except Exception as error:  # each store has errors of its own
        raise NoCorpus(f"'{name}' cannot be listed ({said(error)}).") from error
    local = "file" in (store.protocol if isinstance(store.protocol, tuple) else (store.protocol,))
    for path in found:
        yield Path(path) if local else Stored(store, path), path[len(below) :].lstrip("/")


def said(error: Exception) -> str:
    """An error of a library in one line."""
    lines = str(error).strip().splitlines() or ["no more is known"]
    return f"{type(error).__name__}: {lines[0][:200]}"


def _store(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    import fsspec  # type: ignore[import-untyped]

    scheme = url.partition("://")[0].lower()
    try:
        store, root = fsspec.core.url_to_fs(url)
        return store, str(root)
    except ImportError as error:
        missing = str(error).splitlines()[0]
    except Exception as error:
        missing = said(error)
    try:
        from fsspec.implementations.arrow import ArrowFSWrapper  # type: ignore[import-untyped]
        from pyarrow.fs import FileSystem

        plain, root = FileSystem.from_uri(url)
        return ArrowFSWrapper(plain), root
    except Exception as error:
        raise NoCorpus(
            f"'{scheme}://…' cannot be opened here: {missing}. Install what it needs (s3fs for s3, "
            "gcsfs for gs, adlfs for abfs), or copy the corpus to a folder."
        ) from error
