"""The verbs `study` and `compare` of the command line."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from headscope.store import Study
    from headscope.study.progress import Progress


def study(
    corpus: Annotated[
        str,
        typer.Argument(
            help="A file (.txt, .jsonl, .parquet; also .gz, .xz, .zst), a folder, - for standard "
            "input, or hf:NAME[@CONFIG][:SPLIT]."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the study; resumed if it is half done.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="A hub name or a folder.", show_default="the bundled specimen"
        ),
    ] = None,
    document: Annotated[
        str, typer.Option(help="What a document of plain text is: a file, paragraph or line.")
    ] = "file",
    column: Annotated[str, typer.Option(help="Text column of .jsonl and .parquet.")] = "text",
    files: Annotated[
        str | None, typer.Option(help="Which files of a folder, such as '**/*.txt'.")
    ] = None,
    rule: Annotated[str, typer.Option(help="Which pairs are high.")] = "quantile(0.01)",
    reading: Annotated[
        list[str] | None, typer.Option(help="raw, cosine, centred; may be repeated.")
    ] = None,
    special: Annotated[
        str, typer.Option(help="Special tokens among the pairs: kept, left_out or both.")
    ] = "both",
    sweep: Annotated[bool, typer.Option(help="Also every other rule, in the same pass.")] = False,
    null: Annotated[
        list[str] | None,
        typer.Option(help="shuffle, random, uniform, identity; may be repeated."),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Tokens read at once.", show_default="the model's own")
    ] = None,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    seed: Annotated[int, typer.Option(help="Of intervals, nulls and examples.")] = 0,
    strict: Annotated[bool, typer.Option(help="Stop at what cannot be read.")] = False,
    quiet: Annotated[bool, typer.Option(help="Say nothing but the result.")] = False,
    json_progress: Annotated[
        bool, typer.Option("--json-progress", help="Tell progress as JSON on standard error.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Study a corpus: every measure, with chance levels and intervals, and the findings."""
    from headscope.pairs import parse_rule
    from headscope.scope import load

    scope = load(model, device=device)
    try:
        made = scope.study(
            corpus,
            out,
            cut=document,
            column=column,
            pattern=files,
            strict=strict,
            progress=_progress(quiet, json_progress),
            readings=tuple(reading or ("raw",)),
            special=("kept", "left_out") if special == "both" else (special,),
            rule=parse_rule(rule),
            sweep=sweep,
            nulls=tuple(null or ()),
            window=window,
            language=language,
            seed=seed,
        )
    except KeyboardInterrupt:
        typer.echo(f"Stopped. The same command goes on with what is in {out}.", err=True)
        raise typer.Exit(130) from None
    Console().print(summary(made))


def compare(
    first: Annotated[Path, typer.Argument(help="A finished study.")],
    second: Annotated[Path, typer.Argument(help="Another.")],
    rows: Annotated[int, typer.Option(help="Differences to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which heads of two studies differ, with intervals on the difference."""
    from headscope.store import open_study
    from headscope.study.compare import compare as compared

    found = compared(open_study(first), open_study(second))
    if as_json:
        typer.echo(json.dumps(found.slice(0, rows).to_pylist(), ensure_ascii=False))
        return
    differing = sum(found["differs"].to_pylist())
    table = Table(
        title=f"{differing:,} of {len(found):,} numbers differ",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for name in (
        "layer",
        "head",
        "quantity",
        "special",
        "first",
        "second",
        "second - first (95 %)",
    ):
        table.add_column(name, justify="left" if name in ("quantity", "special") else "right")
    for row in found.slice(0, rows).to_pylist():
        table.add_row(
            str(row["layer"]),
            str(row["head"]),
            row["quantity"],
            row["special"] or "",
            *(f"{row[name]:.3g}" for name in ("first", "second")),
            f"{row['difference']:.3g} ({row['low']:.3g} … {row['high']:.3g})",
        )
    Console().print(table)


def _progress(quiet: bool, as_json: bool) -> "Progress":
    from headscope.study.progress import Bar, JsonLines, Quiet

    if as_json:
        return JsonLines()
    return Quiet() if quiet or not sys.stderr.isatty() else Bar()


def summary(study: "Study") -> Table:
    """The findings of a study, for the terminal."""
    said = study.manifest
    corpus, own = said["corpus"], said["parameters"]
    skipped = f", {corpus['skipped']:,} skipped" if corpus["skipped"] else ""
    told = (own["readings"][0], own["special"][-1], own["rule"])
    table = Table(
        title=f"{escape(said['model']['name'])} on {escape(corpus['name'])}: "
        f"{corpus['documents']:,} documents, {corpus['tokens']:,} tokens{skipped}",
        caption=f"{told[0]}, special tokens {told[1].replace('_', ' ')}, {told[2]}; "
        f"all tables are in {escape(str(study.path))}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    columns = ["claim", "verdict", "value (95 %)", "trend"]
    table_rows = [
        row
        for row in study.findings.to_pylist()
        if row["mode"] == "real"
        and (row["reading"], row["special"], row["rule"]) in (told, (None, None, None))
    ]
    nulls = any(row["null"] for row in table_rows)
    for name in [*columns, *(["null"] if nulls else [])]:
        table.add_column(name)
    for row in table_rows:
        table.add_row(*_finding(row)[: 5 if nulls else 4])
    return table


COLOURS = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


def _finding(row: dict[str, Any]) -> tuple[str, ...]:
    value = "–" if row["value"] is None else f"{row['value']:.3g}"
    if row["low"] is not None:
        value += f" ({row['low']:.3g} … {row['high']:.3g})"
    trend = "–" if row["trend"] is None else f"ρ {row['trend']:+.2f}, p {row['trend_p']:.2g}"
    null = "–" if row["null"] is None else f"{row['null_value']:.3g} ({row['null']})"
    verdict = f"[{COLOURS[row['verdict']]}]{row['verdict']}[/]"
    if row["verdict"] != "holds":
        verdict += f": {row['reason']}"
    return row["says"], verdict, value, trend, null
