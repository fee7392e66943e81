"""The verb `agreement` of the command line."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from headscope.cli.additions import (
    AsCsv,
    AsJson,
    AskedProgress,
    Column,
    Cut,
    Files,
    JsonProgress,
    Limit,
    Out,
    OwnModel,
    QuietOption,
    Seed,
    Source,
    Windows,
    add,
    show_added,
)
from headscope.cli.options import Device, DType

if TYPE_CHECKING:
    from headscope.study.folder import Study


def agreement(
    corpus: Source,
    out: Out,
    model: OwnModel = None,
    beside: Annotated[
        str | None,
        typer.Option(help="Another model, to hold its heads against these word by word."),
    ] = None,
    document: Cut = None,
    column: Column = None,
    files: Files = None,
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
    """Say which heads do the same, and draw a map of them; adds it to a study."""
    from headscope.scope import load

    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.agreement(
            corpus,
            out,
            beside=None if beside is None else load(beside, device=device, dtype=dtype),
            document=document,
            column=column,
            files=files,
            limit=limit,
            windows=windows,
            seed=seed,
            progress=progress,
        ),
        quiet=quiet,
        asked_progress=asked_progress,
        json_progress=json_progress,
    )
    tables = ("head_pairs", "agreement", "head_map", "heads_across")
    show_added(made, tables, summary, as_csv=as_csv, as_json=as_json)


ROWS = 12


def summary(study: "Study") -> Table:
    """The heads that agree most, for the terminal."""
    how = study.manifest.added["agreement"]
    rows = study.table("head_pairs").to_pylist()
    rows = sorted((row for row in rows if row["agreement"] is not None), key=_agreement)
    clusters = {row["cluster"]: row["cluster_heads"] for row in study.table("head_map").to_pylist()}
    joined = [size for size in clusters.values() if size > 1]
    table = Table(
        title=f"Heads of {escape(study.manifest.model.name)} that do the same: "
        f"{how.documents:,} documents, {how.tokens:,} tokens; {len(joined)} clusters hold "
        f"{sum(joined)} of {sum(clusters.values())} heads",
        caption=f"The first {min(ROWS, len(rows))} of {len(rows):,} pairs; all are in "
        f"{escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("layer–head", "agreement (95 %)", "shared high pairs", "apart in attention"):
        table.add_column(name)
    for row in rows[:ROWS]:
        table.add_row(
            f"{row['first_layer']}–{row['first_head']} and "
            f"{row['second_layer']}–{row['second_head']}",
            f"{row['agreement']:.2f} ({row['agreement_low']:.2f} … {row['agreement_high']:.2f})",
            f"{row['overlap']:.0%} (chance {row['overlap_chance']:.1%})",
            _apart(row),
        )
    return table


def _agreement(row: dict[str, Any]) -> float:
    return -float(row["agreement"])


def _apart(row: dict[str, Any]) -> str:
    apart, chance = row["attention_distance"], row["attention_distance_chance"]
    return "–" if apart is None else f"{apart:.2f} (chance {chance:.2f})"
