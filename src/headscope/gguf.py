"""Models in a single GGUF file, as llama.cpp keeps them; transformers reads them.

Such a file holds numbers and words and runs nothing. Its weights are often rounded to a few bits:
they are unrounded as far as can be, and what is observed is the rounded model.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from headscope.errors import CannotLoad

NEEDED = ("gguf", "accelerate")


def gguf_file(where: str | Path) -> Path | None:
    """The GGUF file that a source names; None for anything else."""
    file = Path(where)
    if file.suffix.lower() != ".gguf" or not os.path.isfile(file):  # says no, never raises
        return None
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise CannotLoad(f"'{where}' is no GGUF file, whatever its name says.")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise CannotLoad(
            f"'{where}' is a GGUF file, and reading one needs {' and '.join(missing)}: "
            "pip install 'headscope[gguf]'"
        )
    return file
