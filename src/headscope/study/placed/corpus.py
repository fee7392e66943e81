"""Pictures or sounds from a folder, a file or a list, one at a time, in a fixed order."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from headscope.corpus import PLAIN, printable
from headscope.errors import CannotRead, NoCorpus
from headscope.inputs.picture import IMAGES, open_picture
from headscope.inputs.sense import SenseKind
from headscope.inputs.sound import SOUNDS, open_sound
from headscope.stores import is_url

ENDINGS: dict[SenseKind, set[str]] = {"image": IMAGES, "sound": SOUNDS}
NAMED = {"image": "picture", "sound": "sound"}


@dataclass(frozen=True, eq=False)
class PlacedDocument:
    """One picture or sound: a file, or what a person has handed over."""

    name: str  # of the file in its folder, or its number in a list
    given: Any

    def content(self, kind: SenseKind) -> bytes:
        """Sixteen bytes that only this picture or sound has, wherever it stands."""
        digest = blake2b(digest_size=16)
        if isinstance(self.given, (str, Path)):
            try:
                digest.update(Path(self.given).read_bytes())
            except OSError as error:
                raise CannotRead(f"cannot be read: {error.strerror or error}") from error
        elif kind == "image":
            pixels = open_picture(self.given)
            digest.update(f"{pixels.shape} ".encode() + pixels.tobytes())
        else:
            samples, rate = open_sound(self.given)
            digest.update(f"{rate} ".encode() + samples.tobytes())
        return digest.digest()


@dataclass(frozen=True, eq=False)
class PlacedCorpus:
    """Where pictures or sounds come from: a file, a folder, or a list of what can be read."""

    source: str | Path | Sequence[Any]
    kind: SenseKind
    files: str | None = None

    @property
    def name(self) -> str:
        """What a person calls it, without the folders it lies in."""
        if isinstance(self.source, (str, Path)):
            return printable(Path(os.path.abspath(self.source)).name or "/")
        return type(self.source).__name__

    @property
    def documents(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[PlacedDocument]:
        if not isinstance(self.source, (str, Path)):
            for number, one in enumerate(self.source, 1):
                name = printable(Path(one).name) if isinstance(one, (str, Path)) else f"{number}"
                yield PlacedDocument(name, one)
            return
        root = Path(self.source)
        if root.is_file():
            yield PlacedDocument(printable(root.name), root)
            return
        found = list(_files(root, self.files, ENDINGS[self.kind]))
        if not found:
            what, endings = NAMED[self.kind], ", ".join(sorted(ENDINGS[self.kind]))
            fits = f" that fits '{self.files}'" if self.files else ""
            raise NoCorpus(f"The folder '{root}' holds no {what}{fits}: {endings}.")
        for path in found:
            yield PlacedDocument(printable(str(PurePosixPath(path.relative_to(root)))), path)


def _files(root: Path, pattern: str | None, endings: set[str]) -> list[Path]:
    """Files of a folder by their endings, or by a pattern; none where it cannot be listed."""
    if pattern is not None and ".." in Path(pattern).parts:
        raise NoCorpus(f"'{pattern}' leads out of the folder '{root}'; write it without '..'.")
    try:
        found = sorted(path for path in root.glob(pattern or "**/*") if path.is_file())
    except (OSError, ValueError, NotImplementedError) as error:
        raise NoCorpus(f"The folder '{root}' cannot be listed: {error}") from None
    return found if pattern else [path for path in found if path.suffix.lower() in endings]


def kind_of_corpus(source: Any, files: str | None, reads: SenseKind | None) -> SenseKind | None:
    """What a corpus is of: "image", "sound", or None for texts.

    `reads` is what the model was loaded to read, None for texts. Of a folder that holds texts too,
    a model that reads texts reads these.
    """
    if isinstance(source, (list, tuple)) and source:
        return _kind_of(source[0], reads)
    if not isinstance(source, (str, Path)) or is_url(source) or str(source) == "-":
        return reads
    root = Path(source)
    if os.path.isfile(root):
        return _kind_of_file(root) or reads
    if not os.path.isdir(root):
        return reads
    if reads is not None:
        return reads
    endings = {path.suffix.lower() for path in _files(root, files or "**/*", set())}
    if endings & (PLAIN | {".jsonl", ".ndjson", ".parquet"}):
        return None
    kinds = [kind for kind in ENDINGS if endings & ENDINGS[kind]]
    if len(kinds) > 1:
        raise NoCorpus(
            f"The folder '{root}' holds pictures and sounds, which are studied apart. Say which "
            "files: files='**/*.png' (--files)."
        )
    return kinds[0] if kinds else None


def _kind_of(one: Any, reads: SenseKind | None) -> SenseKind | None:
    """What the first of a list is."""
    if isinstance(one, (str, Path)):
        return _kind_of_file(Path(one)) if reads or isinstance(one, Path) else None
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], np.ndarray):
        return "sound"
    if isinstance(one, np.ndarray) or hasattr(one, "getbands"):
        return "image"
    return reads


def _kind_of_file(path: Path) -> SenseKind | None:
    return next((kind for kind, all_ in ENDINGS.items() if path.suffix.lower() in all_), None)
