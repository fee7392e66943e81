"""The one way to a terminal: what a text, a file or a model calls itself cannot steer it.

Results go to standard output and words aside to standard error, so that a pipe receives results
only.
"""

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from headscope.visible import STEERING_BUT_LINES, visible


class Terminal(Console):
    """A rich console that spells out what would steer it."""

    def render(  # noqa: D102
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text, lines=True), segment.style)


def say(message: str, style: str = "", begin: str = "") -> None:
    """A word to the person, kept out of what a pipe receives; `begin` in the style given."""
    said = Text.assemble((begin, style), visible(message, lines=True))
    Terminal(stderr=True).print(said, highlight=False, soft_wrap=True)


def show(table: RenderableType) -> None:
    """A result, laid out for people."""
    Terminal().print(table)


def write(text: str) -> None:
    """A result as lines of plain text, for people and for pipes."""
    shown = visible(text, lines=True) if sys.stdout.isatty() else text
    sys.stdout.write(shown + "\n")


def write_json(value: Any, *, indent: int | None = None) -> None:
    """A result as JSON; what would steer a terminal stands as an escape, which reads the same."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    sys.stdout.write(STEERING_BUT_LINES.sub(_escaped, text) + "\n")


def say_json(value: Any) -> None:
    """A word to a program, on standard error."""
    sys.stderr.write(STEERING_BUT_LINES.sub(_escaped, json.dumps(value, ensure_ascii=False)) + "\n")
    sys.stderr.flush()


def write_csv(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, head: bool = True
) -> None:
    """A result as a table with commas; its `head` names the columns."""
    made = io.StringIO()
    table = csv.DictWriter(made, columns, extrasaction="ignore", lineterminator="\n")
    if head:
        table.writeheader()
    for row in rows:
        table.writerow({name: _cell(value) for name, value in row.items()})
    if made.getvalue():
        write(made.getvalue().removesuffix("\n"))


def _cell(value: Any) -> Any:
    """A value in a table with commas; lists and their like as JSON, which programs read again."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _escaped(found: Any) -> str:
    return json.dumps(found[0])[1:-1]
