"""headscope shows what each attention head of a transformer brings together.

Nothing heavy is imported here: torch and transformers come in when a model is loaded. What torch
must not use on this machine is found out before they do, and its threads are told to sleep sooner.
"""

from typing import TYPE_CHECKING, Any

from headscope.amx import spare_torch
from headscope.openmp import wait_less

__version__ = "0.1.0"
__all__ = [
    "HeadscopeError",
    "PlacedReading",
    "Reading",
    "Scope",
    "Series",
    "Study",
    "TopicSplitter",
    "checkpoints",
    "compare",
    "load",
    "nearest",
    "open",
    "open_series",
    "peak",
    "quantile",
    "sample_text",
    "sigma",
]

_HOME = {
    "HeadscopeError": "headscope.errors",
    "PlacedReading": "headscope.placed",
    "Reading": "headscope.reading",
    "Scope": "headscope.scope",
    "Series": "headscope.study.series",
    "Study": "headscope.study.folder",
    "TopicSplitter": "headscope.segment.splitter",
    "checkpoints": "headscope.checkpoint_series",
    "compare": "headscope.study.compare",
    "load": "headscope.scope",
    "nearest": "headscope.pairs.rules",
    "open": "headscope.study.folder",
    "open_series": "headscope.study.series",
    "peak": "headscope.pairs.rules",
    "quantile": "headscope.pairs.rules",
    "sample_text": "headscope.sample",
    "sigma": "headscope.pairs.rules",
}

if TYPE_CHECKING:
    from headscope.checkpoint_series import checkpoints
    from headscope.errors import HeadscopeError
    from headscope.pairs.rules import nearest, peak, quantile, sigma
    from headscope.placed import PlacedReading
    from headscope.reading import Reading
    from headscope.sample import sample_text
    from headscope.scope import Scope, load
    from headscope.segment.splitter import TopicSplitter
    from headscope.study.compare import compare
    from headscope.study.folder import Study, open
    from headscope.study.series import Series, open_series


spare_torch()
wait_less()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headscope' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
