"""A series of studies: one model at several steps of its training, on the same corpus.

A series is a folder with a study for each checkpoint, in the order of their steps. What it says
over training is read from the tables of the studies, and written beside them as Parquet and CSV for
other programs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from headscope import __version__
from headscope.errors import CannotStudy
from headscope.measures.registry import MEASURES
from headscope.output import check_out, write_out
from headscope.study.folder import Study, open_study, reads_tables
from headscope.study.manifest import sealed
from headscope.study.shown import ShownTable
from headscope.study.told import told_view
from headscope.study.writer import MANIFEST, SERIES, explained

STEP = re.compile(
    r"(?:step|checkpoint|ckpt|iter|epoch)[-_ ]?(\d+)([km]?)(?![a-z\d])", re.IGNORECASE
)
NUMBER = re.compile(r"(\d+)([km]?)(?![a-z\d])", re.IGNORECASE)
TIMES = {"": 1, "k": 1000, "m": 10**6}
WHEN = {"checkpoint": pa.string(), "step": pa.int64()}
WHERE = {
    **{name: pa.string() for name in ("measure", "reading", "special", "rule", "level")},
    **{name: pa.int32() for name in ("layer", "head")},
    "quantity": pa.string(),
}
NUMBERS = ("value", "error", "low", "high", "chance", "lift", "lift_low", "lift_high")
CLAIMS = {
    **{name: pa.string() for name in ("claim", "says", "verdict", "reason")},
    **{name: pa.float64() for name in ("value", "low", "high", "threshold", "trend", "trend_p")},
}
LABELS = {
    **{name: pa.int32() for name in ("layer", "head")},
    "label": pa.string(),
    "strength": pa.float64(),
}


def step_of(name: str) -> int | None:
    """The step in the name of a checkpoint: 3000 of `step003000`, `checkpoint-3000`, `step_3k`."""
    named = STEP.findall(name) or NUMBER.findall(name)
    if not named or len(named[-1][0]) > 15:
        return None
    digits, unit = named[-1]
    return int(digits) * TIMES[unit.lower()]


def in_order(names: "list[str] | tuple[str, ...]") -> list[str]:
    """Names in the order of their steps; those without one, such as `final`, come last."""
    steps = {name: step_of(name) for name in names}
    return sorted(names, key=lambda name: (steps[name] is None, steps[name] or 0, name))


@dataclass(frozen=True)
class Series:
    """Studies of one model along its training; every table is an attribute."""

    path: Path

    @cached_property
    def studies(self) -> Mapping[str, Study]:
        """The study of each checkpoint by its name, in the order of training."""
        with explained(self.path):
            folders = {one.name: one for one in self.path.iterdir() if (one / MANIFEST).is_file()}
        found = {name: open_study(folders[name]) for name in in_order(tuple(folders))}
        if not found:
            raise CannotStudy(
                f"No checkpoint of the series in '{self.path}' is finished. Run the command that "
                "began it again: it goes on where it stopped."
            )
        (first, one), *others = found.items()
        for name, other in others:
            if changed := _apart(one, other):
                raise CannotStudy(
                    f"The studies of '{first}' and '{name}' in '{self.path}' are no series: not "
                    f"the same {changed}. Name another folder with --out for either."
                )
        return found

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The step of each checkpoint, as its name says it."""
        return tuple(step_of(name) for name in self.studies)

    @property
    def last(self) -> Study:
        """The study of the last checkpoint."""
        return list(self.studies.values())[-1]

    @cached_property
    def measures(self) -> ShownTable:
        """Every quantity of every head, layer and model, by checkpoint."""
        return self._gathered(_measures)

    @cached_property
    def findings(self) -> ShownTable:
        """Every claim with its verdict, as it is told, by checkpoint."""
        return self._gathered(_findings)

    @cached_property
    def labels(self) -> ShownTable:
        """Every label of every head, by checkpoint."""
        return self._gathered(_labels)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return ("measures", "findings", "labels")

    def write(self) -> None:
        """Write every table into the folder, as Parquet and CSV."""
        with explained(self.path):
            for name in self.tables:
                table = getattr(self, name).arrow
                stream, lines = pa.BufferOutputStream(), pa.BufferOutputStream()
                pq.write_table(table, stream, compression="zstd")
                csv.write_csv(table, lines)
                write_out(self.path / f"{name}.parquet", stream.getvalue().to_pybytes())
                write_out(self.path / f"{name}.csv", lines.getvalue().to_pybytes())

    def report(self, path: str | Path) -> Path:
        """Write a page with every chart over training: one file that needs no other."""
        from headscope.report.series_page import series_page

        path = check_out(path, ".html", ".htm")
        return write_out(path, series_page(self))

    def _gathered(self, table_of: Any) -> ShownTable:
        """The same table of every study, with its checkpoint and step in front."""
        parts = []
        for name, study in self.studies.items():
            table = table_of(study)
            when = {"checkpoint": [name] * len(table), "step": [step_of(name)] * len(table)}
            columns = {one: pa.array(values, WHEN[one]) for one, values in when.items()}
            parts.append(
                pa.table(columns | dict(zip(table.column_names, table.columns, strict=True)))
            )
        return ShownTable(pa.concat_tables(parts))

    def __repr__(self) -> str:
        names = list(self.studies)
        return (
            f"<Series of {len(names)} checkpoints, {names[0]} to {names[-1]}, on "
            f"{self.last.manifest.corpus.name}; tables {', '.join(self.tables)}>"
        )


@reads_tables
def _measures(study: Study) -> pa.Table:
    schema = pa.schema([*WHERE.items(), *((name, pa.float64()) for name in NUMBERS)])
    parts = []
    for measure in MEASURES:
        if measure not in study.tables:
            continue
        table = study.table(measure)
        table = table.filter(pc.equal(table["mode"], "real"))
        table = table.append_column("measure", pa.array([measure] * len(table), pa.string()))
        parts.append(table.select(schema.names).cast(schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


@reads_tables
def _findings(study: Study) -> pa.Table:
    view = told_view(study.manifest.parameters)
    rows = [
        row
        for row in study.table("findings").to_pylist()
        if row["mode"] == "real" and view.has(row)
    ]
    return pa.table({name: pa.array([row[name] for row in rows], CLAIMS[name]) for name in CLAIMS})


@reads_tables
def _labels(study: Study) -> pa.Table:
    rows = [
        {"layer": row["layer"], "head": row["head"], "label": label, "strength": strength}
        for row in study.table("heads").to_pylist()
        for label, strength in zip(row["labels"], row["strengths"], strict=True)
    ]
    return pa.table({name: pa.array([row[name] for row in rows], LABELS[name]) for name in LABELS})


def _apart(one: Study, other: Study) -> str:
    """What two studies do not share, that those of a series do."""
    first, second = one.manifest, other.manifest
    sizes = [(said.model.layers, said.model.heads) for said in (first, second)]
    if sizes[0] != sizes[1]:
        return "layers and heads"
    if first.corpus.fingerprint != second.corpus.fingerprint:
        return "corpus"
    return "" if first.parameters == second.parameters else "parameters"


def is_series(path: str | Path) -> bool:
    """Whether a folder holds a series, finished or not."""
    return (Path(path) / SERIES).is_file()


def begin_series(path: str | Path) -> Path:
    """Make a folder for a series, or take one up again; any other folder is refused."""
    path = Path(path)
    with explained(path):
        if path.exists() and not is_series(path) and (not path.is_dir() or any(path.iterdir())):
            raise CannotStudy(
                f"'{path}' is not empty, and holds no series of studies. Nothing was written. "
                "Name a new folder for the series."
            )
        path.mkdir(parents=True, exist_ok=True)
        if not is_series(path):
            write_out(path / SERIES, sealed({"series": 1, "headscope": __version__}))
    return path


def open_series(path: str | Path) -> Series:
    """Open a series of studies: the checkpoints that are finished."""
    if not is_series(path):
        raise CannotStudy(
            f"There is no series of studies in '{path}': no {SERIES}. Make one with: "
            f"headscope study CORPUS --checkpoints FOLDER --out {path}"
        )
    series = Series(Path(path))
    _ = series.studies  # raises where they are not as they should be
    return series
