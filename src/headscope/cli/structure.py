"""The verb `structure` of the command line."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from headscope.cli.additions import (
    AsCsv,
    AsJson,
    AskedProgress,
    JsonProgress,
    Limit,
    Out,
    OwnModel,
    QuietOption,
    Seed,
    Windows,
    add,
    show_added,
)
from headscope.cli.options import Device, DType

if TYPE_CHECKING:
    from headscope.study.folder import Study

ROWS = 40


def structure(
    gold: Annotated[
        str,
        typer.Argument(
            metavar="GOLD",
            help="Annotated text, a file or a folder: CoNLL-U, columns of words and names, LitBank "
            "(JSON lines) or GAP.",
        ),
    ],
    out: Out,
    model: OwnModel = None,
    limit: Limit = 200,
    windows: Windows = 8,
    seed: Seed = 0,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    quiet: QuietOption = False,
    asked_progress: AskedProgress = False,
    json_progress: JsonProgress = False,
    device: Device = "auto",
    dtype: DType = None,
) -> None:
    """Say how well each head finds what people have annotated; adds it to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.structure(
            gold, out, limit=limit, windows=windows, seed=seed, progress=progress
        ),
        quiet=quiet,
        asked_progress=asked_progress,
        json_progress=json_progress,
    )
    show_added(made, ("structure_best", "structure_heads"), summary, as_csv=as_csv, as_json=as_json)


def summary(study: "Study") -> Table:
    """The best head of each relation, for the terminal."""
    how = study.manifest.added["structure"]
    said = how.parameters
    table = Table(
        title=f"What heads of {escape(study.manifest.model.name)} find of {escape(said['gold'])}: "
        f"chosen on {said['documents chosen on']} documents, judged on "
        f"{said['documents judged on']} others",
        caption="found: % of words whose mate gets the head's largest signal; distances: what the "
        "distances of its picks would find; rule: the best rule without a head. All heads are in "
        f"the table structure of {escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("relation", "words", "head", "signal", "found (95 %)", "distances", "rule"):
        table.add_column(name, no_wrap=name != "rule")
    rows = [row for row in study.table("structure_best").to_pylist() if row["best"]]
    rows.sort(key=lambda row: (row["kind"], -row["count"]))
    for row in rows[:ROWS]:
        reach = "" if row["low"] is None else f" ({_percent(row['low'])} … {_percent(row['high'])})"
        table.add_row(
            escape(row["relation"]),
            f"{row['count']:,}",
            f"{row['layer']}–{row['head']}",
            row["signal"].replace("attention_", "att. "),
            f"{_percent(row['value'])}{reach}",
            _percent(row["matched"]),
            f"{_percent(row['baseline_value'])} {escape(row['baseline'])}",
        )
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"
