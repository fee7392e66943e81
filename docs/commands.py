"""The reference of the command line, from what the commands say of themselves."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from headscope.cli import app

WORDS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH", bool: ""}


def command_reference() -> str:
    """One page of Markdown."""
    page = [
        "# The command line\n",
        "Layers and heads are counted from 1. `headscope COMMAND --help` says the same.\n",
    ]
    commands = {one.name or one.callback.__name__: one.callback for one in app.registered_commands}
    for name in sorted(commands):
        page += section(name.replace("_", "-"), commands[name])
    return "\n".join(page)


def section(name: str, command: Callable[..., Any]) -> Iterator[str]:
    """What one command does, and what it takes."""
    taken = [parameter(*each) for each in parameters(command)]
    places = [called.strip("`") for called, _, _, is_argument in taken if is_argument]
    yield f"## {name}\n"
    yield f"    {' '.join(['headscope', name, '[OPTIONS]', *places])}\n"
    yield f"{' '.join(inspect.cleandoc(command.__doc__ or '').split())}\n"
    yield "| | | unless given |\n|---|---|---|"
    for called, says, default, _ in taken:
        yield f"| {called} | {says} | {default} |"
    yield ""


def parameters(command: Callable[..., Any]) -> Iterator[tuple[str, type, Any, Any]]:
    """Name, type, what Typer is told of it, and default of each parameter."""
    hints = get_type_hints(command, include_extras=True)
    for name, one in inspect.signature(command).parameters.items():
        kind, about = get_args(hints[name])[:2]
        yield name, kind, about, one.default


def parameter(
    name: str, kind: type, about: OptionInfo | ArgumentInfo, default: Any
) -> tuple[str, str, str, bool]:
    """How a parameter is given, what it is for, its default, and whether it has no name."""
    says = " ".join((about.help or "").split()).replace("|", r"\|").replace("[", r"\[")
    if isinstance(about, ArgumentInfo):
        word = about.metavar or name.upper()
        return f"`{word}`", says, "" if default is not inspect.Parameter.empty else "needed", True
    # What is written first in an annotation, Typer keeps in the place of a default.
    names = [one for one in (about.default, *(about.param_decls or ())) if is_name(one)]
    names = names or [f"--{name.replace('_', '-')}"]
    word = WORDS.get(plain(kind), "TEXT")
    called = f"`{', '.join(names)}{' ' + word if word else ''}`"
    if isinstance(about.show_default, str):
        return called, says, about.show_default, False
    if default is inspect.Parameter.empty:
        return called, says, "needed", False
    nothing = default is None or default is False
    return called, says, "" if nothing else f"`{default}`", False


def is_name(value: Any) -> bool:
    """Whether this is a name of an option."""
    return isinstance(value, str) and value.startswith("-")


def plain(kind: Any) -> Any:
    """The type of one value: str of `list[str] | None`."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    return get_args(kind)[0] if get_origin(kind) is list else kind
