"""The verb `prune` of the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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


def prune(
    corpus: Source,
    out: Out,
    model: OwnModel = None,
    by: Annotated[
        str,
        typer.Option(
            help="Which heads go first: noise, snr, effect, gradient, depth, random, or a quantity "
            "of the study (smallest first; with - before it largest first)."
        ),
    ] = "noise",
    keep: Annotated[float, typer.Option(help="Share of the heads that stays.")] = 0.5,
    even: Annotated[
        bool, typer.Option("--even", help="Take as many heads from every layer.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Also write the model without them to this new folder.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="masked, causal, or embedding (of the mean hidden state).",
            show_default="the model's own",
        ),
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
    """Take heads away, more and more of them, and say what it costs; adds it to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.prune(
            corpus,
            out,
            by=by,
            keep=keep,
            even=even,
            save=save,
            loss=loss,  # type: ignore[arg-type]
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
    show_added(made, ("pruning", "prune"), summary, as_csv=as_csv, as_json=as_json)


def summary(study: "Study") -> Table:
    """What each order costs at each share, for the terminal."""
    how = study.manifest.added["prune"]
    rows = study.table("pruning").to_pylist()
    shares = sorted({row["removed"] for row in rows})
    written = f" Written: {how.parameters['how']}." if "how" in how.parameters else ""
    table = Table(
        title=f"Loss of {escape(study.manifest.model.name)} ({escape(how.parameters['loss'])}) "
        f"without a share of its heads: {how.documents:,} documents, {how.tokens:,} tokens",
        caption=f"Random: the mean of its draws. Intervals are in {escape(str(study.path))}."
        f"{written}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("first to go by")
    for share in shares:
        table.add_column(f"{share:.1%}".replace(".0%", "%"), justify="right")
    for order in dict.fromkeys(row["order"] for row in rows):
        cells = []
        for share in shares:
            own = [x["loss"] for x in rows if (x["order"], x["removed"]) == (order, share)]
            cells.append(f"{sum(own) / len(own):.3g}")
        table.add_row(order, *cells)
    return table
