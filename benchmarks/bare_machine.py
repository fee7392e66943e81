"""Imported before headscope, lets it run on a machine that has a GPU but not all packages.

Without numba, what little is not a kernel runs uncompiled; without sentencex, sentences end at
every full stop. Neither makes a difference to what the kernels do. What stands in for a package is
a file in a folder on the path, so that processes that are started have it too.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

INSTEAD = {
    "numba": "class config:\n    CACHE_DIR = ''\n\n"
    "def njit(**_):\n    return lambda function: function\n",
    "sentencex": "import re\n\ndef segment(_, text):\n"
    "    return re.findall(r'[^.!?]+[.!?]*\\s*', text)\n",
    "platformdirs": "import tempfile\nfrom pathlib import Path\n\ndef user_cache_path(name):\n"
    "    return Path(tempfile.gettempdir()) / name\n",
}

missing = {name: code for name, code in INSTEAD.items() if not find_spec(name)}
if missing:
    folder = tempfile.TemporaryDirectory(prefix="headscope-bare-")  # as long as this process
    for name, code in missing.items():
        (Path(folder.name) / f"{name}.py").write_text(code)
    sys.path.append(folder.name)
