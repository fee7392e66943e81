"""How a study is written: only where nobody else's files are, in whole steps, one run at a time.

Only files that a study writes are ever replaced or removed, by their names, and no link is followed
but the folder's own. A study without a manifest is not finished; the manifest is written last.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import CannotStudy, OtherStudy
from headscope.study.manifest import (
    Addition,
    Manifest,
    TableEntry,
    manifest_bytes,
    read_manifest,
    table_names,
    written,
)

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST, TABLES, RESUME = "manifest.json", "tables", "resume"
LOCK, STATE = "lock", "state.safetensors"
SERIES = "series.json"  # in the folder of a series of studies, from its beginning on
PART = ".part"  # at the end of what is being written


class StudyFolder:
    """Where a study is written."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def finished(self) -> bool:
        """Whether a whole study is there."""
        return os.path.lexists(self.path / MANIFEST)

    @property
    def saved(self) -> bool:
        """Whether there is a state to go on from."""
        return (self.path / RESUME / STATE).is_file()

    @contextmanager
    def held(self) -> Iterator["StudyFolder"]:
        """Make the folder, unless it is somebody else's, and keep other runs out of it."""
        from filelock import FileLock, Timeout

        self._refuse_foreign()
        with explained(self.path):
            (self.path / RESUME).mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / RESUME / LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise CannotStudy(
                    f"Another run is writing '{self.path}'. Wait for it, or name another folder."
                ) from None
        try:
            yield self
        finally:
            lock.release()
            if self.finished:
                self.tidy()

    def _refuse_foreign(self) -> None:
        """Raise where a folder holds anything, and it is no study of ours."""
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise CannotStudy(f"'{self.path}' is a file; name a folder for the study.")
        with explained(self.path):
            for name in (RESUME, TABLES):
                place = self.path / name
                if os.path.lexists(place) and not _is_really(place, stat.S_ISDIR):
                    raise self._foreign(name)
            for name in (LOCK, STATE):
                place = self.path / RESUME / name
                if os.path.lexists(place) and not _is_really(place, stat.S_ISREG):
                    raise self._foreign(f"{RESUME}/{name}")
            if self.finished or self.saved:
                return
            # A run that ended before it saved anything leaves its lock, and may leave half a state.
            begun = {LOCK, STATE + PART}
            resume = self.path / RESUME
            inside = set(os.listdir(resume)) - begun if resume.exists() else set()
            beside = set(os.listdir(self.path)) - {RESUME}
            if beside or inside:
                found = sorted(beside) or [f"{RESUME}/{name}" for name in sorted(inside)]
                raise self._foreign(found[0])

    def _foreign(self, name: str) -> CannotStudy:
        return CannotStudy(
            f"'{self.path}' is not empty, and holds no study that can be gone on with (it holds "
            f"{name!a}). Nothing was written. Name a new folder for the study."
        )

    def save_state(self, arrays: Mapping[str, Any], about: dict[str, Any]) -> None:
        """Replace the state to resume from, in one step."""
        from safetensors.numpy import save

        plain = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
        text = json.dumps(about)
        data = save(plain, {"headscope": text, "sha256": _digest(plain, text)})
        with explained(self.path):
            _replace(self.path / RESUME / STATE, data)

    def load_state(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The arrays and the notes of the last state; None where there is none."""
        from safetensors import SafetensorError, safe_open

        if not self.saved:
            return None
        file = self.path / RESUME / STATE
        try:
            with safe_open(file, "np") as opened:
                said = opened.metadata() or {}
                if "headscope" not in said:
                    raise CannotStudy(
                        f"'{file}' is no state of a study, so it is neither gone on with nor "
                        "replaced. Name another folder with --out."
                    )
                arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            text = said["headscope"]
            if said["sha256"] != _digest(arrays, text):
                raise ValueError("its checksum does not fit")
            about = json.loads(text)
        except (SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
            raise OtherStudy(
                f"What was saved of the study in '{self.path}' is damaged ({file.name}: {error}).",
                python="Name another folder, or begin anew with force=True.",
                command="Name another folder with --out, or begin anew with --force.",
            ) from error
        return arrays, about

    def finish(self, tables: "Mapping[str, pa.Table]", manifest: Manifest) -> None:
        """Write every table, then the manifest."""
        with explained(self.path):
            (self.path / TABLES).mkdir(exist_ok=True)
            listed = self._put({n: _numbered(one, manifest) for n, one in tables.items()})
            self._say(replace(manifest, tables=listed))

    def add(self, name: str, tables: "Mapping[str, pa.Table]", how: Addition) -> None:
        """Add tables to a finished study, in the place of those added by that name before.

        Between any two steps the folder holds a whole study: the one before, or the one without
        what was added by this name before, or the new one.
        """
        with self.held(), explained(self.path):
            manifest = read_manifest(manifest_bytes(self.path / MANIFEST), str(self.path))
            others = {one: said for one, said in manifest.added.items() if one != name}
            before = manifest.added[name].tables if name in manifest.added else ()
            kept = {one: said for one, said in manifest.tables.items() if one not in before}
            if taken := sorted(set(tables) & set(kept)):
                raise CannotStudy(f"The study in '{self.path}' has a table '{taken[0]}' already.")
            if before:
                self._say(replace(manifest, tables=kept, added=others))
            listed = self._put({n: _numbered(one, manifest) for n, one in tables.items()})
            added = {**others, name: replace(how, tables=tuple(sorted(tables)))}
            self._say(replace(manifest, tables=dict(sorted((kept | listed).items())), added=added))
            for gone in set(before) - set(tables):
                _remove(self.path / TABLES / f"{gone}.parquet")

    def _put(self, tables: "Mapping[str, pa.Table]") -> dict[str, TableEntry]:
        """Write tables, and say what a manifest has to say of them."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        listed = {}
        for name, table in sorted(tables.items()):
            stream = pa.BufferOutputStream()
            pq.write_table(table, stream, compression="zstd")
            data = stream.getvalue()
            _replace(self.path / TABLES / f"{name}.parquet", data)
            listed[name] = TableEntry(table.num_rows, sha256(data).hexdigest())
        _folder_to_disk(self.path / TABLES)
        return listed

    def _say(self, manifest: Manifest) -> None:
        """Put a manifest where it belongs, in one step."""
        _replace(self.path / MANIFEST, written(manifest))
        _folder_to_disk(self.path)

    def tidy(self) -> None:
        """Remove what a finished study needs no more; without a word where that cannot be."""
        from filelock import FileLock, Timeout

        resume = self.path / RESUME
        if not _is_really(resume, stat.S_ISDIR):
            return
        with suppress(OSError, Timeout):
            with FileLock(resume / LOCK, timeout=0):
                for name in (STATE, STATE + PART):
                    _remove(resume / name)
            _remove(resume / LOCK)
            resume.rmdir()

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Remove the study, once another state is saved: its own files, by name, and no others."""
        names = table_names(self.path / MANIFEST) if self.finished else []
        with self.held():
            yield
            with explained(self.path):
                for name in names:
                    _remove(self.path / TABLES / f"{name}.parquet")
                _remove(self.path / MANIFEST)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say where it was that something could not be written, and what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise CannotStudy(
            f"'{path}' cannot be written: {error.strerror or error}. "
            + (
                "Make room; the same command then goes on from what was saved before."
                if full
                else "Name a folder with --out in which you may write."
            )
        ) from error


def _numbered(table: "pa.Table", manifest: Manifest) -> "pa.Table":
    """A table with the layers' own numbers, where some layers of the model have no heads."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers, names = manifest.model.numbers, table.column_names
    if not numbers:
        return table
    for name in ("layer", "first_layer", "second_layer", "closest_layer"):
        if name in names:
            places = pc.subtract(table[name], pa.scalar(1, pa.int32())).combine_chunks()
            own = pa.array(numbers, table[name].type).take(places)
            table = table.set_column(names.index(name), name, own)
    if "shape" in names:  # in words, of a curve over the layers that have heads
        words = pc.replace_substring(table["shape"], " layer ", " layer with heads no. ")
        table = table.set_column(names.index("shape"), "shape", words)
    return table


def _digest(arrays: Mapping[str, Any], text: str) -> str:
    """A checksum of everything a state holds."""
    digest = sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _is_really(place: Path, kind: Any) -> bool:
    """Whether something is there, of this kind, and no link to it."""
    try:
        return bool(kind(place.lstat().st_mode))
    except OSError:
        return False


def _replace(file: Path, data: Any) -> None:
    """Put data where a file is, so that a reader sees the old or the new, whole."""
    part = file.with_name(file.name + PART)
    _remove(part)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(part, flags, 0o666), "wb") as opened:
            opened.write(data)
            opened.flush()
            _to_disk(opened)
        part.replace(file)
    except OSError:
        with suppress(OSError):
            _remove(part)
        raise


def _to_disk(opened: Any) -> None:
    os.fsync(opened.fileno())


def _folder_to_disk(folder: Path) -> None:
    """Let names outlive a loss of power, where the system can promise it."""
    if os.name == "posix":
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _remove(file: Path) -> None:
    """Remove a file of ours, or a link in its place, but never what a link leads to."""
    file.unlink(missing_ok=True)
