"""Imported before headscope, lets it run on a machine that has a GPU but not all packages.

Without numba, what little is not a kernel runs uncompiled; without sentencex, sentences end at
every full stop. Neither makes a difference to what the kernels do.
"""

import re
import sys
import tempfile
import types
from importlib.util import find_spec
from pathlib import Path

if not find_spec("numba"):
    nothing = types.SimpleNamespace(CACHE_DIR="")
    sys.modules["numba"] = types.SimpleNamespace(
        njit=lambda **_: lambda function: function, config=nothing
    )
if not find_spec("sentencex"):
    sys.modules["sentencex"] = types.SimpleNamespace(
        segment=lambda _, text: re.findall(r"[^.!?]+[.!?]*\s*", text)
    )
if not find_spec("platformdirs"):
    sys.modules["platformdirs"] = types.SimpleNamespace(
        user_cache_path=lambda name: Path(tempfile.gettempdir()) / name
    )
