"""The verb `study` of the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from headscope.cli.options import progress_of
from headscope.errors import NotPossible
from headscope.terminal import say, show, write_csv, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headscope.study.folder import Study
    from headscope.study.shown import ShownTable
    from headscope.study.told import ToldClaim


def study(
    corpus: Annotated[
        str,
        typer.Argument(
            help="A file (.txt, .jsonl, .parquet; also .gz, .xz, .zst), a folder, a URL of either "
            "(s3://…), - for standard input, or a data set of the hub: hf:NAME, hf:NAME@CONFIG, "
            "with :SPLIT behind. Or a folder of pictures or sounds, with a model that reads them."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the study; resumed if it is half done.")],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A hub name, a folder, a GGUF file.",
            show_default="the bundled specimen",
        ),
    ] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(
            help="Study each checkpoint of a model: a folder of model folders, "
            "MODEL@REVISION,REVISION of the hub, or MODEL,MODEL.",
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
        list[str] | None,
        typer.Option(help="raw, cosine, centred; may be repeated.", show_default="raw and cosine"),
    ] = None,
    special: Annotated[
        str, typer.Option(help="Special tokens among the pairs: kept, left_out or both.")
    ] = "both",
    sweep: Annotated[bool, typer.Option(help="Also every other rule, in the same pass.")] = False,
    null: Annotated[
        list[str] | None,
        typer.Option(
            help="shuffle, random, permuted, uniform, identity, or none; may be repeated.",
            show_default="random, permuted, shuffle and identity",
        ),
    ] = None,
    null_tokens: Annotated[int, typer.Option(help="Tokens of the corpus nulls run on.")] = 2**12,
    group: Annotated[
        str | None,
        typer.Option(
            help="What intervals are over: document, file (that documents are parts of), or window "
            "(blocks of a long document).",
            show_default="file for paragraphs or lines of several files, else document",
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Tokens read at once.", show_default="the model's own")
    ] = None,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    seed: Annotated[int, typer.Option(help="Of intervals, nulls and examples.")] = 0,
    texts: Annotated[
        int, typer.Option(help="Windows whose text is kept to be looked at; 0: none.", min=0)
    ] = 24,
    strict: Annotated[bool, typer.Option(help="Stop at what cannot be read.")] = False,
    force: Annotated[
        bool, typer.Option(help="Replace another study that is in the folder; nothing else is.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the findings as a table with commas.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="Say nothing but the result.")] = False,
    progress: Annotated[
        bool,
        typer.Option("--progress", help="Tell progress also where standard error is no terminal."),
    ] = False,
    json_progress: Annotated[
        bool, typer.Option("--json-progress", help="Tell progress as JSON on standard error.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32, float16 or bfloat16.", show_default="float32 on a CPU, else the weights'"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Read with so many processes, each with the model.")
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="Read on several, a process each, such as cuda:0,cuda:1.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="local, processes or ray.",
            show_default="local, or processes with --workers or --devices",
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster.", show_default="this machine")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of torch, for each worker.", show_default="torch's own; a worker's 1"
        ),
    ] = None,
    readers: Annotated[
        int | None,
        typer.Option(
            help="Make text ready in so many processes without the model; 0: in this one.",
            show_default="6 beside each GPU, if there are processors for them, else 0",
        ),
    ] = None,
    device_memory: Annotated[
        float | None,
        typer.Option(help="GiB that a GPU may need beyond the model's own pass.", show_default="4"),
    ] = None,
) -> None:
    """Study a corpus: every measure, with chance levels and intervals, and the findings."""
    from headscope.pairs import parse_rule
    from headscope.scope import load
    from headscope.study.folder import reads_tables

    options = {
        "document": document,
        "column": column,
        "files": files,
        "strict": strict,
        "force": force,
        "progress": progress_of(quiet, json_progress, progress),
        "readings": tuple(reading or ("raw", "cosine")),
        "special": ("kept", "left_out") if special == "both" else (special,),
        "rule": parse_rule(rule),
        "sweep": sweep,
        **({} if null is None else {"nulls": tuple(one for one in null if one != "none")}),
        "null_tokens": null_tokens,
        "group": group,
        "window": window,
        "language": language,
        "seed": seed,
        "texts": texts,
        "engine": engine,
        "workers": workers,
        "devices": devices.split(",") if devices else (),
        "address": address,
        "threads": threads,
        "readers": readers,
        "device_memory": device_memory,
    }
    if checkpoints is not None:
        from headscope.cli.checkpoints import checkpoints_summary, study_checkpoints

        if model is not None:
            raise NotPossible("--checkpoints names the models itself; leave --model out.")
        series = study_checkpoints(checkpoints, corpus, out, device, dtype, quiet, options)
        if not write_findings(series.findings, as_csv=as_csv, as_json=as_json):
            show(checkpoints_summary(series))
        return
    scope = load(model, device=device, dtype=dtype)
    try:
        made = scope.study(corpus, out, **options)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        from headscope.study.writer import StudyFolder

        saved = StudyFolder(out).saved
        said = f"what was read so far is saved in {out}, and the same command goes on with it"
        say(f"Stopped; {said if saved else 'nothing was saved, there is nothing to go on with'}.")
        raise typer.Exit(130) from None
    if not write_findings(made.findings, as_csv=as_csv, as_json=as_json):
        show(reads_tables(summary)(made))


def write_findings(findings: "ShownTable", *, as_csv: bool, as_json: bool) -> bool:
    """Print findings for a program, where that was asked for; whether it was."""
    if as_json:
        write_json({"findings": findings.to_pylist()})
    elif as_csv:
        write_csv(findings.to_pylist(), findings.column_names)
    return as_json or as_csv


def summary(study: "Study") -> Table:
    """The findings of a study, for the terminal."""
    from headscope.study.told import told_claims, told_view

    said = study.manifest
    corpus, view = said.corpus, told_view(said.parameters)
    skipped = f", {corpus.skipped:,} skipped" if corpus.skipped else ""
    claims = told_claims(study.findings.to_pylist(), view)
    return claims_table(
        claims,
        title=f"{escape(said.model.name)} on {escape(corpus.name)}: {corpus.in_words}{skipped}",
        caption=f"Told: {view}. All tables are in {escape(str(study.path))}",
    )


def claims_table(claims: "Sequence[ToldClaim]", title: str, caption: str) -> Table:
    """Claims with their verdicts, for the terminal."""
    table = Table(
        title=title,
        caption=caption,
        box=SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name, width in (("claim", 20), ("verdict", 20), ("value (95 %)", 18)):
        table.add_column(name, min_width=width)
    several = any(len(claim.views) > 1 for claim in claims)
    if several:
        table.add_column("views agree")
    for claim in claims:
        table.add_row(*_finding(claim)[: 3 + several])
    return table


COLOURS = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


def _finding(claim: "ToldClaim") -> tuple[str, ...]:
    from headscope.study.told import strongest_null

    row = claim.row
    value = "–" if row["value"] is None else f"{row['value']:.3g}"
    if row["low"] is not None:
        value += f" ({row['low']:.3g} … {row['high']:.3g})"
    if row["trend"] is not None:
        value += f"\nρ {row['trend']:+.2f}, p {row['trend_p']:.2g}"
    if null := strongest_null(row):
        value += f"\nnull {null}"
    verdict = f"[{COLOURS[row['verdict']]}]{row['verdict']}[/]"
    if row["verdict"] != "holds":
        verdict += f": {escape(str(row['reason']))}"
    return escape(str(row["says"])), verdict, value, claim.brief or "–"
