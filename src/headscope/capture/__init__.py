"""The only place that touches attention inside transformers.

`places` says where attention modules stand, `structure` finds and proves heads off the attention
interface, `seam` observes a model while it runs.
"""

from headscope.capture.outputs import HeadOutputs, Site
from headscope.capture.places import Place
from headscope.capture.seam import (
    Attention,
    Capture,
    Change,
    Observe,
    Seam,
    capture,
    find_attention,
    silence,
)
from headscope.capture.structure import Joined

__all__ = [
    "Attention",
    "Capture",
    "Change",
    "HeadOutputs",
    "Joined",
    "Observe",
    "Place",
    "Seam",
    "Site",
    "capture",
    "find_attention",
    "silence",
]
