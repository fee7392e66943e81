"""The pair statistics on a CUDA device, for all heads and texts of a layer at once.

For `quantile`, one pass over tiles counts the pairs of each of 31 levels of C, one lists the pairs
from the level of the threshold upwards (a little more than the high pairs), and the exact threshold
and every count come from the list. Other rules know their threshold and list the pairs that reach
it. Where a list would not fit, which takes many equal similarities or a very wide rule, thresholds
are found bit by bit and the pairs listed a few rows at a time: slower, and as exact.
The same kernels run on a CPU under Triton's interpreter (TRITON_INTERPRET=1), for tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headscope.pairs import launches
from headscope.pairs.assemble import COUNTERS, HighNumbers, PairNumbers, assemble
from headscope.pairs.batch import TokenBatch
from headscope.pairs.distances import DISTANCE_BINS
from headscope.pairs.launches import NO_PAIR, Counted, Lists, Sums
from headscope.pairs.layer import Layer, TextTensors, prepare, tile_of
from headscope.pairs.rules import Nearest, Peak, Quantile, Rule, Sigma
from headscope.pairs.statistics import PairStatistics, TopPairs, Values
from headscope.pairs.tiles import BINS
from headscope.pairs.tokens import Reading, Special
from headscope.pairs.vectors import refuse_not_finite

LONGEST = 46_340  # tokens: the place i S + j of a pair is a 32-bit number
LIST_BYTES = 2**28  # of pairs listed at once
WIDE = 0.05  # beyond this share of the pairs, levels begin at the smallest similarity


def pair_statistics(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: Reading,
    special: Special,
    top: int,
    layer: str | None,
) -> PairStatistics:
    """Compute every statistic of z (B, H, S, d), and wait for it."""
    return start(z, batch, rules, reading=reading, special=special, top=top, layer=layer).result()


@dataclass(frozen=True, slots=True)
class Pending:
    """Statistics under way on the device."""

    batch: TokenBatch
    rules: tuple[Rule, ...]
    reading: Reading
    special: Special
    name: str | None  # of the layer
    layer: Layer
    sums: Sums
    ranks: tuple[Tensor | None, ...]  # (BH,) for each quantile rule, and last for the top pairs
    high: tuple[Counted, ...]  # for each rule
    best: Tensor  # (BH, N) the top pairs
    overflow: Tensor  # (BH, rules + 1) whether a list was too short, last for the top pairs

    def result(self) -> PairStatistics:
        """Wait for the numbers, and do again what did not fit."""
        heads = len(self.layer.V) // max(len(self.batch), 1)
        refuse_not_finite((self.layer.finite > 0).view(-1, heads).cpu(), self.name)
        for n, too_many in enumerate(self.overflow.cpu().T):
            if bool(too_many.any()):
                _redo(self, n, torch.nonzero(too_many)[:, 0].to(self.layer.V.device))
        numbers = _to_host(self, (len(self.batch), heads))
        return assemble(self.batch, self.rules, numbers, self.reading, self.special)


def start(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: Reading = "raw",
    special: Special = "kept",
    top: int = 0,
    layer: str | None = None,
) -> Pending:
    """Launch every kernel for z (B, H, S, d) and return at once."""
    longest = int(max(batch.lengths, default=0))
    if longest > LONGEST:
        raise ValueError(f"the cuda backend takes texts of up to {LONGEST} tokens, not {longest}")
    where = str(z.device)
    tile = tile_of(z, reading)
    text = batch.remember(
        ("cuda", special, where, tile), lambda: TextTensors(batch, special, z.device, tile)
    )
    vectors = prepare(z, text, reading)
    sums = launches.add_up(vectors)

    def ranks_of(rule: Rule | None) -> Tensor | None:
        if rule is not None and not isinstance(rule, Quantile):
            return None
        numbers = [min(top, n) if rule is None else rule.number(n) for n in text.counts]
        ranks = batch.remember(
            ("ranks", rule, top, special, where), lambda: torch.tensor(numbers, device=z.device)
        )
        return ranks[vectors.texts]  # (BH,)

    ranks = (*(ranks_of(rule) for rule in rules), ranks_of(None) if top else None)
    high = tuple(Counted.nothing(vectors, sums, _reach(rule, vectors, sums)) for rule in rules)
    best = vectors.new(top, dtype=torch.int64, fill=NO_PAIR)
    overflow = vectors.new(len(ranks), dtype=torch.bool)
    pending = Pending(
        batch, tuple(rules), reading, special, layer, vectors, sums, ranks, high, best, overflow
    )
    most = max([top, *(_most(rule, max(text.counts)) for rule in rules)])
    _list_and_count(pending, min(4 * most + 4096, max(text.counts) + 1))
    return pending


def _most(rule: Rule, pairs: int) -> int:
    """How many of so many pairs a rule is expected to call high."""
    return rule.number(pairs) if isinstance(rule, Quantile) else pairs // 32


def _reach(rule: Rule, layer: Layer, sums: Sums) -> Tensor:
    """The threshold of a rule, (BH,) or (BH, S); room for it where it has to be searched for."""
    match rule:
        case Quantile():
            return layer.new(dtype=torch.float32)
        case Peak(f):
            return launches.round_up(f * sums.extremes[:, 1])
        case Sigma(k):
            return launches.round_up(sums.mean + k * sums.variance.sqrt())
        case Nearest(k):
            return launches.nearest_reach(layer, k)


def _list_and_count(pending: Pending, capacity: int) -> None:
    """List the pairs of as many heads at once as there is room for, and count them."""
    layer, together = pending.layer, max(1, LIST_BYTES // (8 * capacity))
    searched = [(n, k) for n, k in enumerate(pending.ranks) if k is not None]
    widest = max([0.0, *(rule.q for rule in pending.rules if isinstance(rule, Quantile))])
    for begin in range(0, len(layer.V), together):
        heads = slice(begin, begin + together)
        some, sums = layer.some(heads), pending.sums.some(heads)
        lists = Lists(some, capacity)
        if searched:
            levels = _levels(sums, widest)
            upwards = launches.count_levels(some, levels).flip(1).cumsum(1).flip(1)  # (BH, BINS)
            chosen = {n: (upwards[:, 1:] >= k[heads, None]).sum(1) for n, k in searched}
            lowest = torch.stack(list(chosen.values())).amin(0).clamp(min=1)  # (BH,)
            # Half a level down, and a little for rounding.
            edge = levels[:, 0] + (lowest - 1.51) / levels[:, 1]
            lists.collect(edge.float())
            above = torch.nn.functional.pad(upwards, (0, 1))  # (BH, BINS + 1)
            for n, k in searched:
                at = chosen[n]
                rank = k[heads] - above.gather(1, at[:, None] + 1)[:, 0]
                pending.overflow[heads, n] = (at == 0) | (lists.found > capacity)
                if n == len(pending.rules):
                    pending.best[heads] = lists.best(pending.best[heads])
                    continue
                counted = pending.high[n].some(heads)
                counted.reach.copy_(launches.select(lists, levels, at.int(), rank.int()))
                counted.add(lists)
        for n, ranks in enumerate(pending.ranks[: len(pending.rules)]):
            if ranks is None:
                counted = pending.high[n].some(heads)
                lists.collect(counted.reach)
                pending.overflow[heads, n] = lists.found > capacity
                counted.add(lists)


def _levels(sums: Sums, widest: float) -> Tensor:
    """Where levels begin and how many there are to a unit of C, (BH, 2)."""
    low, high = sums.extremes[:, 0], sums.extremes[:, 1]
    if widest <= WIDE:
        low = torch.minimum(torch.maximum(sums.mean, sums.variance.sqrt() / 4), high)
    low = low.float()
    span = high.float() - low
    scale = torch.where(span > 0, (BINS - 2) / span.clamp(min=1e-30), 1.0)
    return torch.stack([low, scale], 1)


def _redo(pending: Pending, n: int, which: Tensor) -> None:
    """Count one rule again for some heads, a few rows at a time so that every list fits."""
    layer, ranks = pending.layer.some(which), pending.ranks[n]
    reach = None if ranks is None else launches.kth_largest(layer, ranks[which])
    is_top = n == len(pending.rules)
    if reach is None:
        reach = pending.high[n].reach[which]
    counted = Counted.nothing(layer, pending.sums.some(which), reach)
    rows = layer.text.tile * layer.text.size
    blocks = max(1, min(layer.text.blocks, LIST_BYTES // (16 * rows * len(which))))
    lists, best = Lists(layer, blocks * rows), torch.full_like(pending.best[which], NO_PAIR)
    for first in range(0, layer.text.blocks, blocks):
        lists.collect(reach, first, min(blocks, layer.text.blocks - first))
        if is_top:
            best = lists.best(best)
        else:
            counted.add(lists)
    if is_top:
        pending.best[which] = best
    else:
        pending.high[n].put(which, counted)


def _to_host(pending: Pending, shape: tuple[int, int]) -> PairNumbers:
    """Bring all numbers over in one copy; counts are whole numbers below 2**53."""
    layer, text, sums = pending.layer, pending.layer.text, pending.sums
    packed = [layer.exponent[:, None], layer.shift[:, None], sums.binned.flatten(1)]
    packed += [sums.unrelated, sums.extremes]
    for counted in pending.high:
        spread = counted.by_distance.double()  # (BH, S)
        expected = (spread * text.inside_share[layer.texts]).sum(1, keepdim=True)
        reach = counted.reach if counted.reach.ndim == 1 else counted.reach[:, 0]
        packed += [reach[:, None], counted.counters[:, :COUNTERS], spread @ text.bins, expected]
        packed += [counted.sums.double() / counted.unit.double()[:, None]]
    flat = torch.cat([part.double() for part in packed], 1).cpu().numpy()  # (BH, …)
    parts = iter(np.split(flat, np.cumsum([part.shape[1] for part in packed])[:-1], axis=1))

    def take(*more: int) -> Values:
        return next(parts).reshape(*shape, *more)

    exponent, shift, binned = take().astype(np.int32), take(), take(2, DISTANCE_BINS)
    unrelated, extremes = take(2), take(2)
    high = tuple(
        HighNumbers(
            reach=take(),
            counters=take(COUNTERS).astype(np.int64),
            by_distance=take(DISTANCE_BINS).astype(np.int64),
            expected=take(),
            sums=take(2),
            taking_part=counted.taking_part.cpu().numpy().reshape(*shape, -1),
        )
        for counted in pending.high
    )
    top = _top_pairs(pending.best, text.size, shape) if pending.best.shape[1] else None
    sides = (binned[:, :, 0], binned[:, :, 1])
    return PairNumbers(exponent, shift, *sides, unrelated, extremes, high, top)


def _top_pairs(best: Tensor, size: int, shape: tuple[int, int]) -> TopPairs:
    """Read positions and values from the sortable numbers of `Lists.best`."""
    order = best.cpu().numpy().reshape(*shape, -1)  # (B, H, N)
    missing = order == NO_PAIR
    place = order & 0xFFFFFFFF
    key = (~(order >> 32)).astype(np.int32)
    value = (key ^ ((key >> 31) & 0x7FFFFFFF)).view(np.float32).astype(np.float64)
    return TopPairs(
        first=np.where(missing, -1, place // size),
        second=np.where(missing, -1, place % size),
        value=np.where(missing, np.nan, value),
    )
