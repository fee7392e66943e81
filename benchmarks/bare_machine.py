"""Imported before headscope, lets it run on a machine that has a GPU but not all packages.

Without numba, what little is not a kernel runs uncompiled; without sentencex, sentences end at
every full stop. Neither makes a difference to what the kernels do.
"""

import re
import sys
import types
from importlib.util import find_spec

if not find_spec("numba"):
    sys.modules["numba"] = types.SimpleNamespace(njit=lambda **_: lambda function: function)
if not find_spec("sentencex"):
    sys.modules["sentencex"] = types.SimpleNamespace(
        segment=lambda _, text: re.findall(r"[^.!?]+[.!?]*\s*", text)
    )
