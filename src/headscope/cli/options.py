"""Options that several verbs have, and what they mean."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.study.progress import Progress

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A hub name, a folder, a GGUF file.",
        show_default="the bundled specimen",
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")]
DType = Annotated[
    str | None,
    typer.Option(
        help="float32, float16 or bfloat16.", show_default="float32 on a CPU, else the weights'"
    ),
]


def progress_of(quiet: bool, as_json: bool, asked: bool = False) -> "Progress":
    """How a command tells how far it is; `asked`: also where standard error is no terminal."""
    from headscope.study.progress import Bar, JsonLines, Lines, Quiet

    if as_json:
        return JsonLines()
    if quiet:
        return Quiet()
    if sys.stderr.isatty():
        return Bar()
    return Lines() if asked else Quiet()
