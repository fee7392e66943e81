"""The verb `denoise` of the command line."""

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


def denoise(
    corpus: Source,
    out: Out,
    model: OwnModel = None,
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
    """Say what comes of taking noise away from head vectors; adds it to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.denoise(
            corpus,
            out,
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
    tables = ("denoise", "denoise_heads")
    show_added(made, tables, summary, as_csv=as_csv, as_json=as_json)


SHOWN = {
    "cleaned_loss": "loss",
    "cleaned_snr": "SNR",
    "cleaned_unrelated": "unrelated",
    "cleaned_repetition_heads": "repetition",
    "cleaned_same_sentence": "sentence",
    "cleaned_range": "range",
}


def summary(study: "Study") -> Table:
    """What every cleaning does, for the terminal."""
    how = study.manifest.added["denoise"]
    table = Table(
        title=f"What comes of taking noise away from the heads of "
        f"{escape(study.manifest.model.name)} (loss: {escape(how.parameters['loss'])}): "
        f"{how.documents:,} documents, {how.tokens:,} tokens",
        caption="In brackets: where as much is taken away at random. Intervals, and every finding, "
        f"are in {escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("what is taken away or kept", *SHOWN.values()):
        table.add_column(name)
    rows = [row for row in study.table("denoise").to_pylist() if row["level"] == "model"]
    found = {(row["cleaning"], row["quantity"]): row for row in rows}
    cleanings = list(dict.fromkeys(row["cleaning"] for row in rows))
    first = cleanings[0]
    table.add_row("nothing", *(_told(found[first, name]["before"]) for name in SHOWN))
    for cleaning in cleanings:
        cells = [found[cleaning, name] for name in SHOWN]
        table.add_row(
            cleaning, *(f"{_told(cell['value'])} ({_told(cell['chance'])})" for cell in cells)
        )
    return table


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
