"""Where a head's attention goes, without keeping the attention matrix A.

`attention_statistics` computes A again from queries and keys, a few rows at a time, and keeps sums:
the mass that tokens of each class send to tokens of each class, the entropy and the maximum of the
rows, the mass on the token itself, its neighbours and its sentence, and the sum of every column.

Supported: bidirectional and causal attention, sliding windows, grouped queries (fewer key heads
than query heads), masks (boolean, or added to the scores: position biases too), soft caps on the
scores, and sinks (one extra score a head that takes mass from the row). Not supported, and refused:
queries and keys of different lengths (cross attention, a cache), and padding on the left.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.compute.underway import at_once, done
from headscope.errors import NotPossible
from headscope.pairs.batch import TokenBatch
from headscope.pairs.statistics import Counts, Values
from headscope.pairs.tokens import Ints, PairTokens

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.pairs import Backend


@dataclass(frozen=True, slots=True)
class AttentionStatistics:
    """Sums over the rows of A, by the class of the row's token; they add up over texts.

    B texts, H heads, S tokens in the longest text, K classes of tokens.
    """

    rows: Counts  # (B, K) tokens of each class
    mass: Values  # (B, H, K, K) what rows of one class (first K) send to another (second K)
    entropy: Values  # (B, H, K) of the row, in nats
    maximum: Values  # (B, H, K) the largest weight of the row
    own: Values  # (B, H, K) mass on the token itself
    previous: Values  # (B, H, K) on the token before
    next: Values  # (B, H, K) on the token after
    own_sentence: Values  # (B, H, K) on tokens of the same sentence, the token itself included
    columns: Values  # (B, H, S) attention that each token receives, summed over rows


ROW_SUMS = ("entropy", "maximum", "own", "previous", "next", "own_sentence")
"""The sums over rows that are kept for every class, in the order in which kernels keep them."""


def from_sums(rows: Counts, mass: Values, sums: Values, columns: Values) -> AttentionStatistics:
    """Name the sums (B, H, 6, K) that kernels keep in the order of `ROW_SUMS`."""
    by_row = {name: sums[:, :, n] for n, name in enumerate(ROW_SUMS)}
    return AttentionStatistics(rows=rows, mass=mass, columns=columns, **by_row)


def joined(
    layers: Sequence[AttentionStatistics], join: Callable[[list[Any]], Any]
) -> AttentionStatistics:
    """The statistics of several layers of the same texts as one, each array put together."""
    names = [field.name for field in fields(AttentionStatistics) if field.name != "rows"]
    arrays = {name: join([getattr(layer, name) for layer in layers]) for name in names}
    return replace(layers[0], **arrays)


@dataclass(frozen=True, slots=True)
class Scores:
    """How attention scores are made from queries and keys."""

    scaling: float
    """Factor on the scalar product of query and key."""
    causal: bool = False
    """Whether a token attends to itself and earlier tokens only."""
    window: int | None = None
    """With a window w, a token attends to tokens less than w places away."""
    softcap: float | None = None
    """With a cap c, a score s becomes c·tanh(s / c)."""


def start_attention_statistics(
    query: "Tensor",
    key: "Tensor",
    tokens: TokenBatch | Sequence[PairTokens],
    classes: Sequence[Ints],
    *,
    number_of_classes: int,
    scaling: float | None = None,
    causal: bool = False,
    window: int | None = None,
    mask: "Tensor | None" = None,
    softcap: float | None = None,
    sinks: "Tensor | None" = None,
    normaliser: "Tensor | None" = None,
    backend: "Backend" = "auto",
    layer: str | None = None,
) -> Callable[[], AttentionStatistics]:
    """Sums over the attention of every head of every text of a batch.

    query: (B, H, S, d); key: (B, G, S, d) with H a multiple of G; text b has `len(tokens[b])`
        tokens, and what lies behind them is padding and never read, so padding needs no mask.
    classes: the class of every token of every text, 0 to `number_of_classes` - 1.
    mask: broadcast to (B, H, S, S); where boolean, true means "attends"; otherwise added.
    sinks: one score a head (H,).
    normaliser: log Σ exp of the rows (B, H, S), where the model's own attention call gave it; the
        cuda backend then need not compute it again.

    For vectors of 16 bits the cuda backend rounds weights to 11 bits before it sums them by class
    and by column, which is good to 5e-4; everything else is summed in float32 or better.
    `attention_statistics` returns them, `start_attention_statistics` a function that waits.
    """
    batch = tokens if isinstance(tokens, TokenBatch) else TokenBatch(tokens)
    longest = max(batch.lengths, default=0)
    if query.ndim != 4 or len(query) != len(batch) or query.shape[2] < longest:
        raise NotPossible(
            f"queries of shape {tuple(query.shape)} do not fit {len(batch)} texts of up to "
            f"{longest} tokens: (texts, heads, tokens, dimensions) is needed"
        )
    if key.shape[2] != query.shape[2]:
        raise NotPossible(
            f"{key.shape[2]} keys for {query.shape[2]} queries: attention statistics are for "
            "self-attention over a whole text, not for cross attention or with a cache"
        )
    if query.shape[1] % key.shape[1]:
        raise NotPossible(f"{query.shape[1]} query heads cannot share {key.shape[1]} key heads")
    # Looked at once, for all layers; what is remembered keeps the classes, and so their id.
    known = ("classes", id(classes), number_of_classes)
    batch.remember(known, lambda: _checked(batch, classes, number_of_classes))
    scores = Scores(
        query.shape[-1] ** -0.5 if scaling is None else scaling, causal, window, softcap
    )
    chosen = backend if backend != "auto" else "cuda" if query.is_cuda else "cpu"
    if chosen == "reference":
        from headscope.attention.reference import attention_statistics

        options = (number_of_classes, scores, mask, sinks, layer)
        return done(attention_statistics(query, key, batch, classes, *options))
    if chosen == "cpu":
        from headscope.attention.cpu.backend import start
    else:
        from headscope.attention.cuda.backend import start
    return start(
        query, key, batch, classes, number_of_classes, scores, mask, sinks, layer, normaliser
    )


attention_statistics = at_once(start_attention_statistics)


def _checked(batch: TokenBatch, classes: Sequence[Ints], number: int) -> Sequence[Ints]:
    """The classes of a batch, if every token has one."""
    together = np.concatenate([*classes, [0]])
    if [len(own) for own in classes] == batch.lengths.tolist() and (
        0 <= together.min() <= together.max() < number
    ):
        return classes
    wrong = (
        b
        for b, (text, own) in enumerate(zip(batch.texts, classes, strict=True))
        if len(text) != len(own) or not np.all((own >= 0) & (own < number))
    )
    b = next(wrong)
    raise NotPossible(
        f"text {b + 1} of the batch needs a class from 0 to {number - 1} for each of its "
        f"{len(batch.texts[b])} tokens"
    )
