"""Write what a person asked for where they said: checked before the work, in one step after."""

import os
from pathlib import Path

from headscope.errors import CannotWrite


def check_out(path: str | Path, *endings: str) -> Path:
    """The path, if a file of one of these kinds can be written there."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}" if endings[1:] else endings[0]
        raise CannotWrite(f"'{path}' must end in {known}: nothing else can be written here.")
    if path.is_dir():
        raise CannotWrite(f"'{path}' is a folder. Name a file in it, such as '{path / 'page'}…'.")
    folder = path.parent
    if not folder.is_dir():
        raise CannotWrite(
            f"There is no folder '{folder}' to write to. Make it: mkdir -p '{folder}'"
        )
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise CannotWrite(f"'{path}' may not be written to. Name another place.")
    return path


def check_new_folder(path: str | Path) -> Path:
    """The path, if a new folder can be made there: nothing is there, or it is empty."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise CannotWrite(f"'{path}' is there already, and not empty. Name a new folder.")
    if not path.parent.is_dir():
        raise CannotWrite(f"There is no folder '{path.parent}' to make '{path.name}' in.")
    return path


def write_out(path: Path, data: str | bytes) -> Path:
    """Put data where a file is, or is to be: whole or not at all."""
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        part.write_bytes(data.encode() if isinstance(data, str) else data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return path
