"""The verb `effects` of the command line."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
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

ROWS = 12
Row = dict[str, Any]


def effects(
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
    to: Annotated[
        list[str] | None,
        typer.Option(
            help="What z is put to: zero, mean, position (its mean there) or resample (that of "
            "another text); may be repeated, and takes as long again each time.",
            show_default="zero",
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
    """Silence every head in turn and say what it costs the model's own loss; adds it to a study."""
    made = add(
        out,
        model,
        device,
        dtype,
        lambda scope, progress: scope.effects(
            corpus,
            out,
            loss=loss,  # type: ignore[arg-type]
            to=to or ("zero",),  # type: ignore[arg-type]
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
    tables = ("effects", "effect_findings", "effect_correlations")
    show_added(made, tables, summary, as_csv=as_csv, as_json=as_json)


def summary(study: "Study") -> Group:
    """The heads that matter most, and what goes along with it, for the terminal."""
    from headscope.cli.study import claims_table
    from headscope.study.told import told_claims, told_view

    view = told_view(study.manifest.parameters)
    claims = claims_table(
        told_claims(study.table("effect_findings").to_pylist(), view),
        title="Does what a head looks like say what it is worth? Within layers:",
        caption=f"Told: {view}. Quantity by quantity: the table effect_correlations",
    )
    return Group(_costly(study), claims)


def _costly(study: "Study") -> Table:
    """The heads that cost most."""
    how = study.manifest.added["effects"]
    by_quantity: dict[str, list[Row]] = {}
    for row in study.table("effects").to_pylist():
        by_quantity.setdefault(row["quantity"], []).append(row)
    effects = [name for name in by_quantity if name.endswith("_effect")]
    told = by_quantity[effects[0]]
    (loss,) = by_quantity["loss"]
    table = Table(
        title=f"Loss of {escape(study.manifest.model.name)} ({escape(how.parameters['loss'])}): "
        f"{_number(loss)}, over {how.documents:,} documents, {how.tokens:,} tokens",
        caption=f"The {ROWS} of {len(told)} heads that cost most when silenced. All are in "
        f"{escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    shown = [*effects, *(["gradient"] if "gradient" in by_quantity else [])]
    for name in ("layer–head", *(name.replace("_", " ") for name in shown)):
        table.add_column(name)
    order = sorted(range(len(told)), key=lambda place: _rank(told[place]))
    for place in order[:ROWS]:
        row = told[place]
        numbers = (_number(by_quantity[name][place]) for name in shown)
        table.add_row(f"{row['layer']}–{row['head']}", *numbers)
    return table


def _rank(row: Row) -> float:
    return 0.0 if row["value"] is None else -float(row["value"])


def _number(row: Row) -> str:
    """A value with its interval."""
    if row["value"] is None:
        return "–"
    if row["low"] is None:
        return f"{row['value']:.3g}"
    return f"{row['value']:.3g} ({row['low']:.3g} … {row['high']:.3g})"
