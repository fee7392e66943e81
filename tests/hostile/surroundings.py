"""A small corpus, how a call was refused, and whether anything around a folder changed."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.pairs import quantile

TEXTS = [
    "The king saw the old king. He rode home, and the long road was empty.",
    "A cat sat. A cat ran! Another cat slept until the morning came.",
    "Rivers carry sand; rivers carry stones. The sand settles there.",
    "The captain said the ship would hold. The captain was wrong.",
]
OPTIONS = {"rule": quantile(0.05), "replicates": 4, "window": 40}


def refusal(call: Callable[[], object]) -> str | None:
    """The sentence in which something was refused; None where it was not."""
    try:
        call()
    except HeadscopeError as error:
        said = str(error)
        assert len(said) > 20, "a sentence"
        said.encode()
        return said
    return None


def snapshot(root: Path, without: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder but what is in one of its folders, as far as anybody can tell."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if here / name != without]
        for name in (*folders, *files):
            path = here / name
            about = path.lstat()
            what: object = stat.S_IFMT(about.st_mode)
            if path.is_symlink():
                what = os.readlink(path)
            elif path.is_file():
                what = hashlib.sha256(path.read_bytes()).hexdigest()
            when = about.st_mtime_ns if not path.is_dir() else sorted(os.listdir(path))
            if path == without.parent and isinstance(when, list):
                when = [one for one in when if one != without.name]
            found[str(path)] = (about.st_mode, what, when)
    return found
