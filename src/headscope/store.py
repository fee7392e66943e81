"""The study folder: Parquet tables and a manifest, as docs/study-format.md says.

A finished study has a manifest.json, which is written last, in one step, and lists every table. A
study under way has none; it has `resume/state.safetensors`, which is replaced in one step as well.
So a reader never sees half a study, and whoever is killed goes on from the last whole state.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import pyarrow as pa

    from headscope.reading import Reading
    from headscope.viewer.widget import Viewer

FORMAT = 1
MANIFEST, TABLES, RESUME = "manifest.json", "tables", "resume"


class CannotStudy(HeadscopeError):  # noqa: N818 - reads as a sentence
    """A study cannot be made, resumed or opened."""


class StudyFolder:
    """Where a study is written."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def finished(self) -> bool:
        """Whether a whole study is there."""
        return (self.path / MANIFEST).exists()

    @contextmanager
    def held(self) -> Iterator["StudyFolder"]:
        """Make the folder and keep other runs out of it."""
        import fcntl

        if self.path.exists() and not self.path.is_dir():
            raise CannotStudy(f"'{self.path}' is a file; name a folder for the study.")
        (self.path / RESUME).mkdir(parents=True, exist_ok=True)
        with (self.path / RESUME / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CannotStudy(
                    f"Another run is writing '{self.path}'. Wait for it, or name another folder."
                ) from None
            yield self

    def save_state(self, arrays: Mapping[str, Any], about: dict[str, Any]) -> None:
        """Replace the state to resume from, in one step."""
        from safetensors.numpy import save

        data = save(
            {name: np.ascontiguousarray(value) for name, value in arrays.items()},
            {"headscope": json.dumps(about, ensure_ascii=False)},
        )
        _replace(self.path / RESUME / "state.safetensors", data)

    def load_state(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The arrays and the notes of the last state; None where there is none."""
        from safetensors import safe_open

        file = self.path / RESUME / "state.safetensors"
        if not file.exists():
            return None
        with safe_open(file, "np") as opened:
            about = json.loads(opened.metadata()["headscope"])
            return {name: opened.get_tensor(name) for name in opened.keys()}, about  # noqa: SIM118

    def finish(self, tables: "Mapping[str, pa.Table]", manifest: dict[str, Any]) -> None:
        """Write every table, then the manifest, then forget the state."""
        import pyarrow.parquet as pq

        part, whole = self.path / f"{TABLES}.part", self.path / TABLES
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        listed = {}
        for name, table in sorted(tables.items()):
            file = part / f"{name}.parquet"
            pq.write_table(table, file, compression="zstd")
            _to_disk(file)
            digest = sha256(file.read_bytes()).hexdigest()
            listed[name] = {"rows": table.num_rows, "sha256": digest}
        shutil.rmtree(whole, ignore_errors=True)
        part.rename(whole)
        manifest = {"format": FORMAT, **manifest, "tables": listed}
        text = json.dumps(manifest, ensure_ascii=False, indent=2)
        _replace(self.path / MANIFEST, text.encode() + b"\n")
        shutil.rmtree(self.path / RESUME, ignore_errors=True)


def _replace(file: Path, data: bytes) -> None:
    """Put data where a file is, so that a reader sees the old or the new, whole."""
    part = file.with_name(file.name + ".part")
    part.write_bytes(data)
    _to_disk(part)
    part.replace(file)


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


@dataclass(frozen=True)
class Study:
    """A finished study; every table is an attribute: `study.findings`, `study.heads`, …"""

    path: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was studied, and how."""
        found: dict[str, Any] = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        return found

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.manifest["tables"])

    def table(self, name: str) -> "pa.Table":
        """One table, as Arrow; `.to_pandas()` from there."""
        import pyarrow.parquet as pq

        if name not in self.tables:
            raise CannotStudy(f"There is no table '{name}'; there are: {', '.join(self.tables)}.")
        return pq.read_table(self.path / TABLES / f"{name}.parquet")

    def __getattr__(self, name: str) -> "pa.Table":
        if name.startswith("_") or name not in self.tables:
            raise AttributeError(f"a study has no '{name}'; its tables: {', '.join(self.tables)}")
        return self.table(name)

    def sql(self, query: str) -> "pa.Table":
        """The answer to a question in SQL, through DuckDB; every table is there by its name."""
        import duckdb

        with duckdb.connect() as connection:
            for name in self.tables:
                connection.register(name, self.table(name))
            return connection.sql(query).to_arrow_table()

    def report(self, path: str | Path) -> Path:
        """Write the report: one page that needs no other file."""
        from headscope.report.study_page import study_page

        path = Path(path)
        path.write_text(study_page(self), encoding="utf-8")
        return path

    def show(self, reading: "Reading | None" = None, *, height: int = 760) -> "Viewer":
        """Show the viewer in a notebook, every head with its card; `height` in pixels.

        `reading` is the text to look at it on, the sample text unless given.
        """
        from headscope.viewer.studied import reading_beside
        from headscope.viewer.widget import Viewer

        beside, missing = reading_beside(self, reading)
        return Viewer(beside, self, missing=missing, height=height)

    def save(self, path: str | Path, reading: "Reading | None" = None) -> Path:
        """Write the viewer with this study inside, as `show`: one file that needs nothing else."""
        from headscope.viewer.page import saved_page
        from headscope.viewer.studied import reading_beside

        path = Path(path)
        beside, missing = reading_beside(self, reading)
        path.write_text(saved_page(beside, self, missing=missing), encoding="utf-8")
        return path

    def __repr__(self) -> str:
        said = self.manifest
        corpus, model = said["corpus"], said["model"]
        return (
            f"<Study of {model['name']} on {corpus['name']}: {corpus['documents']:,} documents, "
            f"{corpus['tokens']:,} tokens; tables {', '.join(self.tables)}>"
        )


def open_study(path: str | Path) -> Study:
    """Open a finished study."""
    folder = StudyFolder(path)
    if not folder.finished:
        if (folder.path / RESUME).exists():
            raise CannotStudy(
                f"The study in '{path}' is not finished. Run the command that began it again: it "
                "goes on where it stopped."
            )
        raise CannotStudy(
            f"There is no study in '{path}': no {MANIFEST}. Make one with: "
            f"headscope study CORPUS --out {path}"
        )
    study = Study(folder.path)
    if study.manifest["format"] != FORMAT:
        raise CannotStudy(
            f"The study in '{path}' has format {study.manifest['format']}; this headscope reads "
            f"{FORMAT}. Use the headscope that made it, {study.manifest['headscope']}."
        )
    return study


open = open_study  # as hs.open
