"""The verbs `report` and `figure` of the command line."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.texts import text_of_file
from headscope.errors import CannotDraw, CannotRead
from headscope.output import check_out
from headscope.terminal import say, write


def report(
    study: Annotated[
        Path, typer.Argument(help="The folder of a finished study, or of a series of them.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write the report of a study: one page that needs no other file."""
    from headscope.study.folder import open_study
    from headscope.study.series import is_series, open_series

    check_out(out, ".html", ".htm")
    page = (open_series if is_series(study) else open_study)(study).report(out)
    say(f"Open this page in a browser: {page.resolve().as_uri()}")


def figure(
    source: Annotated[
        str,
        typer.Argument(
            help="A finished study or a series of them, a text file for `matrix`, or: list."
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="Which figure.", show_default=False)] = None,
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
    """Draw one figure of a study, or the matrix of one head, for a paper. `list` names them.

    Of a series of studies, what becomes of a finding over training.
    """
    from headscope import figures
    from headscope.study.series import is_series, open_series

    if is_series(source):
        from headscope.over_training import FIGURES

        draw = FIGURES.get(name or "")
        if draw is None and name != "list":
            raise CannotDraw(f"Of a series there are these figures: {', '.join(FIGURES)}.")
        if draw is None:
            write(", ".join(FIGURES))
            return
        check_out(out, ".svg", ".png", ".pdf", ".html")
        figures.save(draw(open_series(source)), out)
        return
    known = [*figures.FIGURES, "matrix"]
    if "list" in (name, source) and (name is None or name == "list"):
        write(", ".join(known))
        return
    if name not in known:
        asked = f"There is no figure '{name}'" if name else "Say which figure to draw"
        raise CannotDraw(f"{asked}; there are: {', '.join(known)}.")
    check_out(out, ".svg", ".png", ".pdf", ".html")
    if name == "matrix":
        from headscope.scope import load

        chosen = _slice(tokens)
        read = load(model).read(text_of_file(source))
        figures.save(figures.matrix(read, layer, head, reading, chosen), out)
        return
    from headscope.study.folder import open_study, reads_tables

    figures.save(reads_tables(figures.FIGURES[name])(open_study(source)), out)


def _slice(words: str) -> slice:
    first, colon, last = words.partition(":")
    numbers = [first or "0", last or "0"]
    if not colon or not all(number.isascii() and number.isdigit() for number in numbers):
        raise CannotRead(f"'{words}' is no range of tokens; write FROM:TO, such as 0:60.")
    return slice(int(first or 0), int(last) if last else None)
