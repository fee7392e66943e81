"""Statistics of the similarity matrices C = Z Zᵀ of attention heads, without ever keeping C.

One function, `pair_statistics`, and three implementations of it that are checked against each
other: `reference.py` (dense, obvious), `cpu/` (torch and numba) and `cuda/` (Triton). torch,
numba and triton are imported when a statistic is first asked for.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from headscope.compute.underway import at_once, done
from headscope.errors import NotPossible
from headscope.pairs.batch import TokenBatch
from headscope.pairs.rules import (
    Nearest,
    Peak,
    Quantile,
    Rule,
    Sigma,
    nearest,
    parse_rule,
    peak,
    quantile,
    sigma,
)
from headscope.pairs.statistics import Anchors, ChancePairs, HighPairs, PairStatistics, TopPairs
from headscope.pairs.tokens import PairTokens, SimilarityReading, Special, plain_tokens

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Anchors",
    "Backend",
    "ChancePairs",
    "HighPairs",
    "Nearest",
    "PairStatistics",
    "PairTokens",
    "Peak",
    "Quantile",
    "Rule",
    "Sigma",
    "SimilarityReading",
    "Special",
    "TokenBatch",
    "TopPairs",
    "nearest",
    "pair_statistics",
    "parse_rule",
    "peak",
    "plain_tokens",
    "quantile",
    "sigma",
    "start_for_settings",
    "start_on_device",
    "start_pair_statistics",
]

Backend = Literal["auto", "reference", "cpu", "cuda"]


def start_pair_statistics(
    z: "Tensor",
    tokens: TokenBatch | Sequence[PairTokens],
    rule: Rule | Sequence[Rule],
    *,
    reading: SimilarityReading = "raw",
    special: Special = "kept",
    backend: Backend = "auto",
    top: int = 0,
    layer: str | None = None,
) -> Callable[[], PairStatistics]:
    """Statistics of C = z zᵀ for every head of every text of a batch.

    z: head vectors (B, H, S, d), float32, bfloat16 or float16, of any strides; text b has
        `len(tokens[b])` tokens, and what lies behind them is padding and never read.
    tokens: one `PairTokens` a text; as a `TokenBatch` when the same texts come for many layers,
        so that what depends on the text alone is counted once. With types, anchors are found.
    rule: which pairs are high; several rules cost little more than one.
    reading: the similarity: "raw" scalar product, "cosine", or "centred" (cosine about the mean).
    special: whether special tokens are "kept" or "left_out" (then no pair touches one).
    backend: "auto" takes the one for z's device.
    top: also return this many of the most similar pairs of every head and text.
    layer: a name for messages.

    The similarity of a pair is the float32 scalar product of the float32 read vectors (see
    `vectors.py`); pairs equal to a threshold are high. Results have the same bits on every run on
    one machine, and do not depend on padding or on what else is in the batch.
    Raises `NotFiniteError`, with the layer, head and text, for NaN or infinity in z.
    `pair_statistics` returns them, `start_pair_statistics` a function that waits for them.
    """
    batch = tokens if isinstance(tokens, TokenBatch) else TokenBatch(tokens)
    rules = tuple(rule) if isinstance(rule, Sequence) else (rule,)
    if z.ndim != 4 or z.shape[0] != len(batch) or z.shape[2] < max(batch.lengths, default=0):
        raise NotPossible(
            f"z has shape {tuple(z.shape)}, which does not fit {len(batch)} texts of up to "
            f"{max(batch.lengths, default=0)} tokens: (texts, heads, tokens, dimensions) is needed"
        )
    chosen = backend if backend != "auto" else "cuda" if z.is_cuda else "cpu"
    if chosen not in ("reference", "cpu", "cuda"):
        raise NotPossible(f"a backend is one of auto, reference, cpu, cuda, not {backend!r}")
    if chosen == "reference":
        from headscope.pairs.reference import pair_statistics

        found = pair_statistics(
            z, batch, rules, reading=reading, special=special, top=top, layer=layer
        )
        return done(found)
    if chosen == "cpu":
        from headscope.pairs.cpu.backend import start
    else:
        from headscope.pairs.cuda.backend import start
    return start(z, batch, rules, reading=reading, special=special, top=top, layer=layer)


pair_statistics = at_once(start_pair_statistics)


def start_for_settings(
    z: "Tensor",
    batch: TokenBatch,
    rules: Sequence[Rule],
    settings: Sequence[Special],
    *,
    reading: SimilarityReading,
    top: int = 0,
    layer: str | None = None,
) -> list[Callable[[], PairStatistics]]:
    """`start_pair_statistics` for several settings of special tokens, together where that pays."""
    if z.is_cuda:
        from headscope.pairs.cuda.backend import start

        return [
            start(z, batch, rules, reading=reading, special=special, top=top, layer=layer)
            for special in settings
        ]
    from headscope.pairs.cpu.backend import start_settings

    return start_settings(z, batch, rules, reading=reading, settings=settings, top=top, layer=layer)


def start_on_device(
    z: "Tensor",
    batch: TokenBatch,
    rules: Sequence[Rule],
    settings: Sequence[Special],
    *,
    reading: SimilarityReading,
    layers: Sequence[str],
    memory: float,
) -> Callable[[], PairStatistics]:
    """The same on a device for several layers in one launch; the statistics stay there.

    memory: GiB that may be needed for it.

    z: (layers · B, H, S, d), the texts of one layer after those of the other; the statistics are
        tensors (settings · B, layers, H, …), the texts under one setting after those under the
        other; `statistics.of_texts` takes them apart.
    """
    from headscope.pairs.cuda.backend import start_layers

    named = {"reading": reading, "settings": settings, "layers": layers}
    return start_layers(z, batch, rules, **named, memory=memory)  # type: ignore[arg-type]
