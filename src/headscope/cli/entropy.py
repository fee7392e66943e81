"""The verb `entropy` of the command line."""

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


def entropy(
    corpus: Source,
    out: Out,
    model: OwnModel = None,
    loss: Annotated[
        str | None,
        typer.Option(help="masked or causal.", show_default="as the model was trained"),
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
    """Say how sure and how right each layer would be as the last; adds it to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.entropy(
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
    tables = ("entropy", "token_types", "confusions")
    show_added(made, tables, summary, as_csv=as_csv, as_json=as_json)


SHOWN = {
    "answer_entropy": "entropy (nats)",
    "answer_loss": "loss (nats)",
    "loss_gain": "gain",
    "answer_rank": "rank",
    "accuracy": "accuracy",
    "accuracy_per_type": "per type",
}


def summary(study: "Study") -> Table:
    """Every layer, for the terminal."""
    how = study.manifest.added["entropy"]
    table = Table(
        title=f"What the layers of {escape(study.manifest.model.name)} would answer "
        f"({escape(how.parameters['loss'])}): {how.documents:,} documents, {how.tokens:,} tokens",
        caption=f"0: the embeddings. Intervals are in {escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("layer", *SHOWN.values()):
        table.add_column(name, justify="right")
    rows = study.table("entropy").to_pylist()
    values = {(row["layer"] or 0, row["quantity"]): row["value"] for row in rows}
    chance = {row["quantity"]: row["chance"] for row in rows}
    for layer in sorted({layer for layer, _ in values}):
        table.add_row(str(layer), *(_shown(name, values[layer, name]) for name in SHOWN))
    table.add_section()
    table.add_row("chance", *(_shown(name, chance[name]) for name in SHOWN))
    return table


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if name.startswith("accuracy") else f"{value:.3g}"
