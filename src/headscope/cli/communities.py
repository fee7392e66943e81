"""The verb `communities` of the command line."""

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

SHOWN = {
    "community_energy": "energy",
    "community_number": "number",
    "communities_as_sentences": "as sentences",
    "communities_as_word_classes": "as classes of words",
    "transition": "transition",
}


def communities(
    corpus: Source,
    out: Out,
    model: OwnModel = None,
    reading: Annotated[str, typer.Option(help="raw, cosine or centred.")] = "centred",
    gamma: Annotated[
        list[float] | None,
        typer.Option(
            help="Resolution, besides 1; may be repeated.", show_default="0.5, 0.7, 1.4 and 2"
        ),
    ] = None,
    tokens: Annotated[int, typer.Option(help="How many of each window are looked at.")] = 128,
    warmed: Annotated[
        int, typer.Option(help="Texts that are looked at by temperature; 0: none.", min=0)
    ] = 4,
    document: Cut = None,
    column: Column = None,
    files: Files = None,
    limit: Limit = 24,
    windows: Windows = 1,
    seed: Seed = 0,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    quiet: QuietOption = False,
    asked_progress: AskedProgress = False,
    json_progress: JsonProgress = False,
    device: Device = "auto",
    dtype: DType = None,
) -> None:
    """Find the communities of tokens that each head makes; adds them to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.communities(
            corpus,
            out,
            reading=reading,  # type: ignore[arg-type]
            gammas=gamma,
            tokens=tokens,
            warmed=warmed,
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
    show_added(
        made,
        ("communities", "community_sweep", "community_warmth"),
        summary,
        as_csv=as_csv,
        as_json=as_json,
    )


def summary(study: "Study") -> Table:
    """The communities of each layer, for the terminal."""
    how = study.manifest.added["communities"]
    table = Table(
        title=f"Communities of tokens under the heads of {escape(study.manifest.model.name)} "
        f"({how.parameters['reading']}): {how.documents:,} documents, {how.windows:,} windows",
        caption="Means over the heads of a layer, with 95 % intervals; all tables are in "
        f"{escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("layer", *SHOWN.values()):
        table.add_column(name, no_wrap=True)
    rows = [row for row in study.table("communities").to_pylist() if row["level"] == "layer"]
    by_layer: dict[int, dict[str, str]] = {}
    for row in rows:
        by_layer.setdefault(row["layer"], {})[row["quantity"]] = _told(row)
    for layer, told in by_layer.items():
        table.add_row(str(layer), *(told.get(name, "–") for name in SHOWN))
    return table


def _told(row: dict[str, float | None]) -> str:
    """A number, its interval and its chance level, below each other."""
    if row["value"] is None:
        return "–"
    told = f"{row['value']:.3g}"
    if row["low"] is not None:
        told += f"\n{row['low']:.3g} … {row['high']:.3g}"
    return told if row["chance"] is None else f"{told}\nchance {row['chance']:.3g}"
