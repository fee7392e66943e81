"""A finished study: Parquet tables and a manifest, as docs/study-format.md says.

It may come from anybody. Every byte of a table is checked against the manifest before it is used,
and what would take too much memory is refused.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from headscope.errors import CannotStudy, HeadscopeError
from headscope.output import check_out, write_out
from headscope.study.manifest import Manifest, manifest_bytes, read_manifest
from headscope.study.shown import ShownTable
from headscope.study.writer import MANIFEST, RESUME, SERIES, TABLES, StudyFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from headscope.reading import Reading
    from headscope.viewer.widget import Viewer

Given = ParamSpec("Given")
Made = TypeVar("Made")
OF_TABLES = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)


def reads_tables(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Say of a study whose tables do not hold what ours hold, when a function meets one, that so.

    Tables may come from anybody, and what is in them is data: every byte is as it was written, but
    not by whom.
    """

    @wraps(function)
    def told(*given: Given.args, **named: Given.kwargs) -> Made:
        try:
            return function(*given, **named)
        except HeadscopeError:
            raise
        except OF_TABLES as error:
            studies = [one for one in given if isinstance(one, Study)]
            which = " or ".join(f"'{one.path}'" for one in studies)
            raise CannotStudy(
                f"The tables of {which} do not hold what those of a study do "
                f"({type(error).__name__}: {str(error)[:120]}). Make the study again; if headscope "
                "made it, please report this, with what --debug shows."
            ) from error

    return told


@dataclass(frozen=True)
class Study:
    """A finished study; every table is an attribute: `study.findings`, `study.heads`, …"""

    path: Path

    @cached_property
    def manifest(self) -> Manifest:
        """What was studied, and how."""
        file = self.path / MANIFEST
        return read_manifest(manifest_bytes(file), str(file))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.manifest.tables)

    def table(self, name: str) -> "pa.Table":
        """One table, as Arrow; `.to_pandas()` from there."""
        if name not in self.tables:
            raise CannotStudy(f"There is no table '{name}'; there are: {', '.join(self.tables)}.")
        file = self.path / TABLES / f"{name}.parquet"
        from headscope.study.checked_tables import read_table

        model, entry = self.manifest.model, self.manifest.tables[name]
        return read_table(file, entry, (model.layer_numbers[-1], model.heads))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table; none where a study of its kind has no such table."""
        found: list[dict[str, Any]] = self.table(name).to_pylist() if name in self.tables else []
        return found

    def __getattr__(self, name: str) -> ShownTable:
        if name.startswith("_") or name not in self.tables:
            raise AttributeError(f"a study has no '{name}'; its tables: {', '.join(self.tables)}")
        return ShownTable(self.table(name))

    def sql(self, query: str, *, external_access: bool = False) -> "pa.Table":
        """The answer to a question in SQL, through DuckDB; every table is there by its name.

        A query reads no file, writes none and loads nothing, unless `external_access`; an answer
        is written to a file by `export`.
        """
        import duckdb

        with duckdb.connect() as connection:
            for name in self.tables:
                connection.register(name, self.table(name))
            connection.execute("set python_enable_replacements = false")
            if not external_access:
                connection.execute("set enable_external_access = false")
                connection.execute("set lock_configuration = true")
            try:
                answer = connection.sql(query)
                found: pa.Table | None = None if answer is None else answer.to_arrow_table()
            except duckdb.PermissionException as error:
                raise CannotStudy(
                    f"A query of a study opens no files: {str(error).splitlines()[0]}. To write an "
                    "answer: study.export(query, 'answer.csv'). If you trust the query, "
                    "study.sql(query, external_access=True)."
                ) from error
            except duckdb.Error as error:
                raise CannotStudy(f"DuckDB cannot answer that: {error}") from error
            if found is None:
                raise CannotStudy("That is no question: SQL that answers begins with select.")
            return found

    def export(self, query: str, path: str | Path) -> Path:
        """Write the answer to a question in SQL to a file: .csv, .parquet or .json (lines)."""
        path = check_out(path, ".csv", ".json", ".parquet")
        answer = self.sql(query)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(answer, path)
        elif path.suffix == ".csv":
            import pyarrow.csv as csv

            csv.write_csv(_flat(answer), path)
        else:
            with path.open("w", encoding="utf-8") as opened:
                for row in answer.to_pylist():
                    opened.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
        return path

    def report(self, path: str | Path) -> Path:
        """Write the report: one page that needs no other file."""
        from headscope.report.study_page import study_page

        path = check_out(path, ".html", ".htm")
        page = study_page(self)
        return write_out(path, page)

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

        path = check_out(path, ".html", ".htm")
        beside, missing = reading_beside(self, reading)
        page = saved_page(beside, self, missing=missing)
        return write_out(path, page)

    def __repr__(self) -> str:
        said = self.manifest
        corpus = said.corpus
        return (
            f"<Study of {said.model.name} on {corpus.name}: {corpus.in_words}; "
            f"tables {', '.join(self.tables)}>"
        )


def _flat(table: "pa.Table") -> "pa.Table":
    """The table with lists as JSON, which fit into a cell."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            cells = [json.dumps(one, ensure_ascii=False) for one in table[field.name].to_pylist()]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    return table


def open_study(path: str | Path) -> Study:
    """Open a finished study."""
    folder = StudyFolder(path)
    if not folder.finished:
        if (folder.path / RESUME).exists():
            raise CannotStudy(
                f"The study in '{path}' is not finished. Run the command that began it again: it "
                "goes on where it stopped."
            )
        if (folder.path / SERIES).is_file():
            raise CannotStudy(
                f"'{path}' holds a series of studies, one in each of its folders. Name one of "
                "these; `report` and `figure` take the series."
            )
        raise CannotStudy(
            f"There is no study in '{path}': no {MANIFEST}. Make one with: "
            f"headscope study CORPUS --out {path}"
        )
    study = Study(folder.path)
    _ = study.manifest  # raises where it is not as it should be
    return study


open = open_study  # as hs.open
