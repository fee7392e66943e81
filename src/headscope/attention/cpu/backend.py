"""The attention statistics on a CPU: torch multiplies some rows of scores, numba adds them up."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.attention.cpu.passes import NO_SINK, add_heads, add_rows
from headscope.attention.statistics import ROW_SUMS, AttentionStatistics, Scores, from_sums
from headscope.compute.threads import SMALL, TOGETHER, heads_at_once, room, start_in_parallel
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.tokens import Ints, PairTokens
from headscope.pairs.vectors import refuse_not_finite

ROWS = 128  # rows of scores that a worker holds
MASKED = -1e30


class _Text:
    """The tokens of a text as the pass reads them: their positions, class by class."""

    def __init__(self, tokens: PairTokens, classes: Ints, number_of_classes: int) -> None:
        self.rows = np.bincount(classes, minlength=number_of_classes)  # (K,)
        self.largest = int(self.rows.argmax())
        order = np.argsort(classes, kind="stable")
        self.members = order[classes[order] != self.largest]
        held = np.where(np.arange(number_of_classes) == self.largest, 0, self.rows)
        self.starts = np.append(0, np.cumsum(held))  # (K + 1,)
        self.sentence = labels(tokens.sentences)  # (S,)
        self.classes = np.ascontiguousarray(classes, np.int32)  # (S,)


def start(
    query: Tensor,
    key: Tensor,
    batch: TokenBatch,
    classes: Sequence[Ints],
    number_of_classes: int,
    scores: Scores,
    mask: Tensor | None,
    sinks: Tensor | None,
    layer: str | None,
    normaliser: Tensor | None = None,  # which this backend does not need
) -> Callable[[], AttentionStatistics]:
    """Start to sum up the attention of every head of every text, some rows at a time."""
    B, H, K = len(batch), query.shape[1], number_of_classes
    S, shared = int(max(batch.lengths, default=0)), H // key.shape[1]
    # With the classes themselves, so that their id stays theirs.
    _, texts = batch.remember(
        ("attention", K, id(classes)),
        lambda: (classes, [_Text(*own, K) for own in zip(batch.texts, classes, strict=True)]),
    )
    mass, columns = np.zeros((B, H, K, K)), np.zeros((B, H, S))
    sums = np.zeros((B, H, len(ROW_SUMS), K))
    finite = torch.ones(B, H, dtype=torch.bool)
    if mask is not None:
        mask = mask.expand(B, H, *mask.shape[-2:])  # (B, H, S, S), a view

    plain = mask is None and scores == Scores(scores.scaling)  # whole rows, as they are

    def compute(b: int, h: int) -> None:
        text, n = texts[b], int(batch.lengths[b])
        some = range(h, min(h + at_once[b], H))
        own = slice(h, some.stop)
        q = query[b, own, :n].float() * scores.scaling  # (heads, S, d)
        keys = own if shared == 1 else [each // shared for each in some]
        k = key[b, keys, :n].float()  # (heads, S, d)
        finite[b, own] = torch.isfinite(q.sum((1, 2)) + k.sum((1, 2)))
        if not bool(finite[b, own].all()):
            return
        sink = np.full(len(some), NO_SINK, np.float32)
        if sinks is not None:
            sink[:] = sinks[own].float().numpy()
        kinds = (text.sentence, text.classes, text.members, text.starts, text.largest)
        if plain and TOGETHER * n**2 <= SMALL:
            step = max(SMALL // n**2, 1)
            for first in range(0, len(some), step):
                few = slice(first, min(first + step, len(some)))
                heads = slice(h + few.start, h + few.stop)
                tiles = room((few.stop - first) * n**2).view(-1, n, n)
                torch.bmm(q[few], k[few].mT, out=tiles)
                results = (mass[b, heads], sums[b, heads], columns[b, heads, :n])
                add_heads(tiles.numpy(), sink[few], *kinds, *results)
            return
        tile = room(ROWS * n).view(ROWS, n)
        for place, each in enumerate(some):
            own_mask = None if mask is None else mask[b, each]
            results = (mass[b, each], sums[b, each], columns[b, each, :n])
            for i0 in range(0, n, ROWS):
                rows = min(ROWS, n - i0)
                multiply(tile[:rows], q[place, i0 : i0 + rows], k[place], i0, scores, own_mask)
                add_rows(
                    tile[:rows].numpy(),
                    i0,
                    scores.causal,
                    scores.window or n,
                    sink[place],
                    *kinds,
                    *results,
                )

    at_once = [heads_at_once(int(length)) for length in batch.lengths]
    wait = start_in_parallel(compute, ((b, h) for b in range(B) for h in range(0, H, at_once[b])))

    def result() -> AttentionStatistics:
        wait()
        refuse_not_finite(finite, layer, "queries or keys")
        rows = np.array([text.rows for text in texts], np.int64).reshape(B, K)
        return from_sums(rows, mass, sums, columns)

    return result


def multiply(
    tile: Tensor, q: Tensor, k: Tensor, i0: int, scores: Scores, mask: Tensor | None
) -> None:
    """Make the scores of the queries q (rows, d) for the keys that any of them may attend to."""
    first, end = 0, len(k)
    if scores.causal:
        end = i0 + len(q)
    if scores.window is not None:
        first, end = max(0, i0 - scores.window + 1), min(end, i0 + len(q) + scores.window)
    part = tile[:, first:end]  # (rows, keys)
    torch.mm(q, k[first:end].T, out=part)
    if scores.softcap is not None:
        part.div_(scores.softcap).tanh_().mul_(scores.softcap)
    if mask is not None:
        allowed = mask[i0 : i0 + len(q), first:end]  # (rows, keys)
        if allowed.dtype == torch.bool:
            part.masked_fill_(~allowed, MASKED)
        else:
            part.add_(allowed).clamp_(min=MASKED)
