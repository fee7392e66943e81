"""The verbs `report` and `figure` of the command line."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headscope.errors import CannotRead


def report(
    study: Annotated[Path, typer.Argument(help="The folder of a finished study.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write the report of a study: one page that needs no other file."""
    from headscope.store import open_study

    page = open_study(study).report(out)
    Console(stderr=True).print(
        escape(f"Open this page in a browser: {page.resolve().as_uri()}"),
        highlight=False,
        soft_wrap=True,
    )


def figure(
    source: Annotated[Path, typer.Argument(help="A finished study; a text file for `matrix`.")],
    name: Annotated[str, typer.Argument(help="Which figure; `list` says what there is.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to: .svg, .png, .pdf or .html.")
    ] = Path("figure.svg"),
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="For `matrix`.", show_default="the bundled specimen"),
    ] = None,
    layer: Annotated[int, typer.Option(help="For `matrix`.")] = 1,
    head: Annotated[int, typer.Option(help="For `matrix`.")] = 1,
    reading: Annotated[str, typer.Option(help="For `matrix`: raw, cosine or centred.")] = "raw",
    tokens: Annotated[str, typer.Option(help="For `matrix`: which tokens, FROM:TO.")] = ":",
) -> None:
    """Draw one figure of a study, or the matrix of one head, for a paper."""
    from headscope import figures

    if name == "matrix":
        from headscope.scope import load

        if not source.is_file():
            raise CannotRead(f"'{source}' is no file: a matrix is drawn of a text in a file.")
        read = load(model).read(source.read_text(encoding="utf-8"))
        figures.save(figures.matrix(read, layer, head, reading, _slice(tokens)), out)
        return
    if name == "list" or name not in figures.FIGURES:
        known = ", ".join([*figures.FIGURES, "matrix"])
        if name != "list":
            raise figures.CannotDraw(f"There is no figure '{name}'; there are: {known}.")
        typer.echo(known)
        return
    from headscope.store import open_study

    figures.save(figures.FIGURES[name](open_study(source)), out)


def _slice(words: str) -> slice:
    first, _, last = words.partition(":")
    try:
        return slice(int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise CannotRead(f"'{words}' is no range of tokens; write FROM:TO, such as 0:60.") from None
