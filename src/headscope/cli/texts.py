"""The text that a command is about."""

import sys
from pathlib import Path

from headscope.documents import ZEROS, not_utf8, zeros
from headscope.errors import CannotRead


def text_of(source: str) -> str:
    """The text a person named: standard input, a file, or the words themselves."""
    if source == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    path = Path(source)
    if source and is_there(path):  # an empty path is the folder one is in
        return text_of_file(source)
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise CannotRead(
            f"The words to read are not UTF-8 (at character {error.start}). Write them into a file "
            "in UTF-8, or set the terminal to UTF-8."
        ) from None
    if path.suffix and not any(c.isspace() for c in source) and len(source) < 200:
        raise CannotRead(
            f"There is no file '{source}'. If these are the words to read, pipe them in: "
            f"echo '{source}' | headscope read -"
        )
    return source


def text_of_file(source: str) -> str:
    """The text in a file."""
    path = Path(source)
    if not is_there(path):
        raise CannotRead(f"There is no file '{source}'. Check the spelling.")
    if path.is_dir():
        raise CannotRead(
            f"'{source}' is a folder, and one text is read here: name a file in it. For all of "
            f"them: headscope study '{source}' --out STUDY"
        )
    return _decoded(path.read_bytes(), source)


def is_there(path: Path) -> bool:
    """Whether a path leads somewhere; what cannot be a path at all leads nowhere."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CannotRead(f"{name}, line {line}, is {not_utf8(error)} '{name}'") from None
    if zeros(text):
        raise CannotRead(f"{name} is {ZEROS} '{name}'")
    return text
