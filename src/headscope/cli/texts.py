"""What goes into the verbs and what they say aside."""

import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from headscope.errors import CannotRead


def text_of(source: str) -> str:
    """The text a person named: standard input, a file, or the words themselves."""
    if source == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    path = Path(source)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # too long, or with a NUL: no path
        is_file = False
    if is_file:
        return _decoded(path.read_bytes(), source)
    if path.suffix and not any(c.isspace() for c in source) and len(source) < 200:
        raise CannotRead(
            f"There is no file '{source}'. If these are the words to read, pipe them in: "
            f"echo '{source}' | headscope read -"
        )
    return source


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CannotRead(
            f"{name} is not UTF-8: byte {error.start} (line {line}) is {data[error.start]:#04x}. "
            f"Convert it first, for example: iconv -f latin1 -t utf-8 {name}"
        ) from None


def say(message: str) -> None:
    """A word to the person, kept out of what a pipe receives."""
    Console(stderr=True).print(escape(message), highlight=False, soft_wrap=True)
