"""What all verbs share that add to a study: their options, how they run, how they print."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from headscope.cli.options import progress_of
from headscope.terminal import say, show, write_csv, write_json

if TYPE_CHECKING:
    from headscope.scope import Scope
    from headscope.study.folder import Study
    from headscope.study.progress import Progress

Source = Annotated[
    str, typer.Argument(metavar="CORPUS", help="The corpus of the study: a file or a folder.")
]
Out = Annotated[Path, typer.Option(help="Folder of the study; it is made first if there is none.")]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A hub name or a folder.",
        show_default="the study's, or the bundled specimen",
    ),
]
Cut = Annotated[
    str | None,
    typer.Option(
        help="What a document of plain text is: a file, paragraph or line.",
        show_default="as in the study",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(help="Text column of .jsonl and .parquet.", show_default="as in the study"),
]
Files = Annotated[
    str | None,
    typer.Option(
        help="Which files of a folder, such as '**/*.txt'.", show_default="as in the study"
    ),
]
Limit = Annotated[
    int, typer.Option(help="Documents to read, drawn by the seed; 0: all of them.", min=0)
]
Windows = Annotated[
    int, typer.Option(help="Most windows of a document, spread evenly; 0: all of them.", min=0)
]
Seed = Annotated[int, typer.Option(help="Of the documents drawn, and of masks.", min=0)]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Say nothing but the result.")]
AskedProgress = Annotated[
    bool,
    typer.Option("--progress", help="Tell progress also where standard error is no terminal."),
]
JsonProgress = Annotated[
    bool, typer.Option("--json-progress", help="Tell progress as JSON on standard error.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the numbers as a table with commas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all that it says as JSON.")]


def add(
    out: Path,
    model: str | None,
    device: str,
    dtype: str | None,
    work: "Callable[[Scope, Progress], Study]",
    *,
    quiet: bool = False,
    asked_progress: bool = False,
    json_progress: bool = False,
) -> "Study":
    """Load the model of a study and let a verb work on it; Ctrl-C is told in a sentence."""
    from headscope.study.writer import StudyFolder

    try:
        told = progress_of(quiet, json_progress, asked_progress)
        return work(_scope(out, model, device, dtype), told)
    except KeyboardInterrupt:
        folder = StudyFolder(out)
        if folder.finished:
            said = f"nothing was added to the study in {out}, which is as it was"
        elif folder.saved:
            said = f"what was studied so far is saved in {out}, and the same command goes on"
        else:
            said = "nothing was saved"
        say(f"Stopped; {said}.")
        raise typer.Exit(130) from None


def show_added(
    study: "Study",
    tables: Sequence[str],
    summary: "Callable[[Study], RenderableType]",
    *,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print what was added: its first table with commas, all of them as JSON, or a summary."""
    if as_json:
        there = [name for name in tables if name in study.tables]
        write_json({name: study.table(name).to_pylist() for name in there})
    elif as_csv:
        found = study.table(tables[0])
        write_csv(found.to_pylist(), found.column_names)
    else:
        show(summary(study))


def _scope(out: Path, model: str | None, device: str, dtype: str | None) -> "Scope":
    """The model that was named, else the one that was studied, with the same heads silenced."""
    from headscope.scope import load
    from headscope.study.folder import open_study
    from headscope.study.writer import StudyFolder
    from headscope.viewer.studied import scope_of

    if not StudyFolder(out).finished:
        return load(model, device=device, dtype=dtype)
    study = open_study(out)
    if dtype is None:
        return scope_of(study, model, device)
    said = study.manifest
    name = model or said.model.name
    return load(name, device=device, dtype=dtype).ablate(list(said.silenced))
