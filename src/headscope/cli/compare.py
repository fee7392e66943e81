"""The verb `compare` of the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from headscope.terminal import say, show, write_csv, write_json

if TYPE_CHECKING:
    from headscope.study.compare import Comparison


def compare(
    first: Annotated[Path, typer.Argument(help="A finished study.")],
    second: Annotated[Path, typer.Argument(help="Another.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write a page (.html) here.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of each table to print.", min=0)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print all numbers as a table with commas.")
    ] = False,
) -> None:
    """Say what differs between two studies: verdicts, labels, and numbers with their intervals."""
    from headscope.study.compare import compare as compared
    from headscope.study.folder import open_study

    found = compared(open_study(first), open_study(second))
    if out is not None:
        found.save(out)
        say(f"Open this page in a browser: {out.resolve().as_uri()}")
    if as_json:
        tables = {"verdicts": found.verdicts, "labels": found.labels, "numbers": found.numbers}
        write_json({name: table.to_pylist() for name, table in tables.items()})
        return
    if as_csv:
        write_csv(found.numbers.to_pylist(), found.numbers.column_names)
        return
    show(summary(found, rows))


def summary(found: "Comparison", rows: int) -> Group:
    """What differs, for the terminal: what a person reads first comes first."""
    verdicts = _table(f"verdicts that differ: {len(found.verdicts)}", ("claim", "first", "second"))
    for row in found.verdicts.slice(0, rows).to_pylist():
        verdicts.add_row(escape(row["says"]), row["first"], row["second"])
    labels = _table(
        f"heads whose labels differ: {len(found.labels)}",
        ("layer–head", "only in the first", "only in the second"),
    )
    for row in found.labels.slice(0, rows).to_pylist():
        said = (escape(", ".join(row[name])) for name in ("only_first", "only_second"))
        labels.add_row(f"{row['layer']}–{row['head']}", *said)
    by_chance = (
        "one study is of one group, so nobody knows"
        if found.unsure
        else ("5 % of these may do so by chance")
    )
    numbers = _table(
        f"numbers that differ: {found.differing:,} of {len(found.numbers):,} ({by_chance})",
        ("layer–head", "quantity", "pairs", "first", "second", "second − first (95 %)"),
    )
    for row in found.numbers.slice(0, rows).to_pylist():
        numbers.add_row(
            f"{row['layer']}–{row['head']}",
            row["quantity"],
            " ".join(filter(None, (row["reading"], (row["special"] or "").replace("_", " ")))),
            *(f"{row[name]:.3g}" for name in ("first", "second")),
            _apart(row),
        )
    return Group(*(table for table in (verdicts, labels, numbers) if table.row_count or rows))


def _apart(row: dict[str, Any]) -> str:
    """A difference with its interval, where there is one."""
    said = f"{row['difference']:.3g}"
    return said if row["low"] is None else f"{said} ({row['low']:.3g} … {row['high']:.3g})"


def _table(title: str, names: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in names:
        table.add_column(name)
    return table
