"""Statistics of the attention matrices A of heads, without ever keeping A.

The shape is that of `pairs`: the contract in `statistics.py`, a plain `reference.py` that specifies
it, and an implementation for each kind of device.
"""

from headscope.attention.statistics import (
    AttentionStatistics,
    attention_statistics,
    start_attention_statistics,
)

__all__ = ["AttentionStatistics", "attention_statistics", "start_attention_statistics"]
