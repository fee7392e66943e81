"""The pair statistics on a CUDA device, for all heads and texts of a layer, or layers, at once.

One pass over the tiles of C adds up. For `quantile`, a sample says about where the threshold lies;
a second pass lists the pairs from a little below it on, and the exact threshold and every count
come from the list. Other rules know their threshold and list the pairs that reach it. Where a list
was too short or the sample misled, which takes many equal similarities or a very wide rule,
thresholds are found bit by bit and the pairs listed a few rows at a time: slower, and as exact.
The same kernels run on a CPU under Triton's interpreter (TRITON_INTERPRET=1), for tests.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headscope.compute import arrays
from headscope.compute.arrays import Array
from headscope.compute.pinned import start_to_host, to_host
from headscope.errors import NotPossible
from headscope.pairs.assemble import assemble
from headscope.pairs.batch import TokenBatch
from headscope.pairs.cuda import LISTS, MEMORY, MOST_HEADS, bytes_of, launches
from headscope.pairs.cuda.high_counts import Counted
from headscope.pairs.cuda.launches import NO_PAIR, Lists, Sums
from headscope.pairs.cuda.layer import Layer, TextTensors, read, tile_of
from headscope.pairs.cuda.results import packed, unpacked
from headscope.pairs.cuda.tokens import TokenTensors
from headscope.pairs.rules import Nearest, Peak, Quantile, Rule, Sigma
from headscope.pairs.statistics import (
    ChancePairs,
    PairStatistics,
    each_of,
    joined,
)
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vectors import VectorSizes, last_place, refuse_not_finite

LONGEST = 46_340  # tokens: the place i S + j of a pair is a 32-bit number
SAFE = 24  # vectors with entries from 2**-24 to 2**24 need no scaling


@dataclass(frozen=True, slots=True)
class Pending:
    """Statistics under way on the device, of one layer or of several, for one setting or several.

    A head of a row is one of `TextTensors`: of a setting, a layer and a text.
    """

    batch: TokenBatch
    rules: tuple[Rule, ...]
    reading: SimilarityReading
    settings: tuple[Special, ...]
    names: tuple[str | None, ...]  # of the layers
    layer: Layer
    sums: Sums
    ranks: tuple[Tensor | None, ...]  # (rows,) for each quantile rule, and last for the top pairs
    high: tuple[Counted, ...]  # for each rule
    best: Tensor  # (rows · H, N) the top pairs
    checks: Tensor  # (1 + rules + 1, rows · H) the largest |z|; then whether a list was too short
    memory: float  # GiB
    exponent: Tensor | None = None  # (rows, H) of a scale, where vectors are too large or small

    def __call__(self) -> PairStatistics:
        """Wait for the numbers, on the host, and do again what did not fit."""
        checks, *found = to_host([self.checks, *packed(self)])
        if self._extreme(checks):
            return self._scaled(checks)()
        if self._redone(checks):
            found = to_host(packed(self))
        return self._assembled(found, each_of(self.layer.text.chance, arrays.to_host))

    def on_device(self) -> Callable[[], PairStatistics]:
        """The numbers as tensors, once it is known that all did fit."""
        checks, device = start_to_host(self.checks), self.checks.device

        def result() -> PairStatistics:
            if self._extreme(checks()):
                own = self._scaled(checks())()
                there = joined([own], lambda found: arrays.put(found[0], device))
                there = replace(there, chance=self.layer.text.chance)
            else:
                self._redone(checks())
                there = self._assembled(packed(self), self.layer.text.chance)
            return joined([there], lambda found: found[0].unflatten(1, (len(self.names), -1)))

        return result

    def _assembled(self, found: Sequence[Array], chance: ChancePairs) -> PairStatistics:
        """The statistics (settings · texts, layers · H, …)."""
        numbers = unpacked(self, found)
        return assemble(chance, self.rules, numbers, self.reading, self.settings[0])

    def by_text(self, values: Array, *more: int) -> Array:
        """Values of every head (rows · H, …) as (settings · texts, layers · H, …)."""
        settings, layers, texts = self.layer.text.shape
        heads = self.layer.z.shape[1]
        apart = values.reshape(settings, layers, texts, heads, *more).swapaxes(1, 2)
        return apart.reshape(settings * texts, layers * heads, *more)

    def _extreme(self, checks: npt.NDArray[Any]) -> bool:
        """Whether vectors have to be scaled; refuses those that are not finite."""
        if self.exponent is not None:
            return False
        largest = checks[0]
        if not np.isfinite(largest).all():
            of_layers = largest.reshape(*self.layer.text.shape, -1)[0]  # (layers, B, H)
            for name, own in zip(self.names, torch.from_numpy(of_layers), strict=True):
                refuse_not_finite(own.isfinite(), name)
        return bool(((largest >= 2.0**SAFE) | ((largest > 0) & (largest < 2.0**-SAFE))).any())

    def _redone(self, checks: npt.NDArray[Any]) -> bool:
        """Count again for the heads whose lists were too short; whether there were any."""
        for n, too_many in enumerate(checks[1:]):
            if too_many.any():
                _redo(self, n, arrays.put(np.flatnonzero(too_many), self.layer.z.device))
        return bool(checks[1:].any())

    def _scaled(self, checks: npt.NDArray[Any]) -> "Pending":
        """The same again with the vectors of each head scaled by a power of two, (texts, H)."""
        z, top = self.layer.z, self.best.shape[1]
        if self.layer.cosine:  # whose vectors then have a length of one
            given = (z, self.batch, self.rules, self.reading, self.settings, top, self.names)
            rows = torch.zeros(self.layer.text.rows, z.shape[1], dtype=torch.int32)
            again = _start(*given, memory=self.memory, apart=True)
            return replace(again, exponent=rows)
        largest = torch.from_numpy(checks[0].reshape(self.layer.text.rows, -1))
        exponent = torch.frexp(largest).exponent  # the same for every setting
        # In two steps, for one factor alone can be too large for a float32.
        half = (-exponent[: len(z)] // 2).to(z.device)[..., None, None]
        rest = -exponent[: len(z)].to(z.device)[..., None, None] - half
        z = torch.ldexp(torch.ldexp(z.float(), half), rest)
        given = (z, self.batch, self.rules, "raw", self.settings, top, self.names)
        again = _start(*given, memory=self.memory)
        return replace(again, reading=self.reading, exponent=exponent)


def start(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading = "raw",
    special: Special = "kept",
    top: int = 0,
    layer: str | None = None,
) -> Pending:
    """Launch every kernel for z (B, H, S, d) and return at once."""
    return _start(z, batch, rules, reading, (special,), top, (layer,))


def start_layers(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading,
    settings: Sequence[Special],
    layers: Sequence[str],
    memory: float = MEMORY,
) -> Callable[[], PairStatistics]:
    """The same for z (L B, H, S, d) of several layers and settings in one launch, on the device.

    What comes is (settings · B, L, H, …): the texts under one setting after those under the other.
    More heads than a launch can have beside each other are taken a setting at a time.
    """
    names = tuple(layers)

    def started(*own: Special) -> Callable[[], PairStatistics]:
        return _start(z, batch, rules, reading, own, 0, names, memory=memory).on_device()

    if len(settings) * z.shape[0] * z.shape[1] <= MOST_HEADS:
        return started(*settings)
    apart = [started(own) for own in settings]

    def result() -> PairStatistics:
        found = [one() for one in apart]
        whole = joined(found, torch.cat)
        names = [field.name for field in fields(ChancePairs)]
        chance: dict[str, Any] = {
            name: torch.cat([getattr(one.chance, name) for one in found]) for name in names
        }
        return replace(whole, chance=ChancePairs(**chance))

    return result


def text_tensors(
    batch: TokenBatch,
    settings: tuple[Special, ...],
    z: Tensor,
    apart: bool,
    layers: int,
) -> TextTensors:
    """What the kernels read of the tokens of a batch, made once for so many layers together."""
    longest = int(max(batch.lengths, default=0))
    if longest > LONGEST:
        raise NotPossible(f"the cuda backend takes texts of up to {LONGEST} tokens, not {longest}")
    where, tile = str(z.device), tile_of(z, apart)
    tokens = batch.remember(("tokens", where), lambda: TokenTensors(batch, z.device))
    return batch.remember(
        ("texts", where, settings, tile, layers),
        lambda: TextTensors(tokens, settings, tile, layers),
    )


def _start(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    reading: SimilarityReading,
    settings: tuple[Special, ...],
    top: int,
    layers: tuple[str | None, ...],
    *,
    memory: float = MEMORY,
    apart: bool = False,
) -> Pending:
    apart = apart or reading == "centred"
    text = text_tensors(batch, settings, z, apart, len(layers))
    own, sizes = read(z, text, reading, apart)
    cosine = reading == "cosine" and not apart
    vectors, lengths = launches.measure(own, text, cosine=cosine)
    if sizes is None:
        whole = torch.ones_like(lengths) if cosine else lengths
        sizes = VectorSizes(lengths, whole * last_place(own) ** 0.5)
    sums = launches.add_up(vectors, exact=any(isinstance(rule, Peak | Sigma) for rule in rules))
    most = int(text.counts.max(initial=0))

    def ranks_of(rule: Rule | None) -> Tensor | None:
        if rule is not None and not isinstance(rule, Quantile):
            return None
        counts, which = np.unique(text.counts, return_inverse=True)
        numbers = [min(top, n) if rule is None else rule.number(n) for n in counts.tolist()]
        return text.by_row(np.array(numbers, np.int32)[which].reshape(text.counts.shape))

    ranks = (*(ranks_of(rule) for rule in rules), ranks_of(None) if top else None)
    longest_first = sizes.lengths.sort(1, descending=True).values  # (rows · H, S)
    large = [launches.large_reach(longest_first, own, z.shape[1]) for own in ranks[: len(rules)]]
    high = tuple(
        Counted.nothing(vectors, sizes, reached, _reach(rule, vectors, sums))
        for rule, reached in zip(rules, large, strict=True)
    )
    best = torch.full((vectors.number, top), NO_PAIR, device=z.device)
    checks = torch.zeros(1 + len(ranks), vectors.number, device=z.device)
    checks[0] = vectors.largest
    pending = Pending(
        batch,
        tuple(rules),
        reading,
        settings,
        layers,
        vectors,
        sums,
        ranks,
        high,
        best,
        checks,
        memory,
    )
    wanted = max([top, *(_most(rule, most) for rule in rules)])
    # Room for two and a half times what is wanted, and never more than twice what there is.
    _list_and_count(pending, min(5 * wanted // 2 + 4096, 2 * most + 64))
    return pending


def _most(rule: Rule, pairs: int) -> int:
    """How many of so many pairs a rule is expected to call high."""
    return rule.number(pairs) if isinstance(rule, Quantile) else pairs // 32


def _reach(rule: Rule, layer: Layer, sums: Sums) -> Tensor:
    """The threshold of a rule, (BH,) or (BH, S); room for it where it has to be searched for."""
    match rule:
        case Quantile():
            return layer.new()
        case Peak(f):
            return launches.round_up(f * sums.maximum)
        case Sigma(k):
            return launches.round_up(sums.mean + k * sums.variance.sqrt())
        case Nearest(k):
            return launches.nearest_reach(layer, k)


def _list_and_count(pending: Pending, capacity: int) -> None:
    """List the pairs of as many heads at once as there is room for, and count them."""
    layer, settings = pending.layer, pending.layer.text.settings

    def parts(heads: Tensor) -> list[slice]:
        together = max(1, bytes_of(LISTS, pending.memory) // (8 * capacity))
        return [slice(n, n + together) for n in range(0, len(heads), together)]

    searched = [(n, ranks) for n, ranks in enumerate(pending.ranks) if ranks is not None]
    if searched:
        largest = searched[0][1]
        for _, ranks in searched[1:]:
            largest = torch.maximum(largest, ranks)
        edges = launches.place_edges(layer, largest, capacity)
        first, looking, shared = layer.heads, [(layer.heads, False)], layer.told_by is not None
        if shared:  # listed once for all settings
            apart = layer.heads.view(len(settings), -1)
            first = apart[settings.index("kept")]
            hides = [special == "left_out" for special in settings]
            looking = list(zip(apart, hides, strict=True))
        for own in parts(first):
            collected = Lists(layer.some(first[own]), capacity)
            collected.collect(edges.value, shared=shared)
            for heads, hide in looking:
                lists = collected.under(layer.some(heads[own]), hide)
                for n, ranks in searched:
                    top = n == len(pending.rules)
                    reach = layer.new() if top else pending.high[n].reach
                    lists.select(edges, ranks, reach, pending.checks[1 + n])
                    if top:
                        pending.best[own] = lists.best(pending.best[own])
                    else:
                        _count(pending.high[n], lists)
    for n, rank in enumerate(pending.ranks[: len(pending.rules)]):
        if rank is not None:
            continue
        for own in parts(layer.heads):
            lists = Lists(layer.some(layer.heads[own]), capacity)
            lists.collect(pending.high[n].reach)
            pending.checks[1 + n, own] = lists.overflow()
            _count(pending.high[n], lists)


def _count(counted: Counted, lists: Lists) -> None:
    """Count the high pairs of heads whose lists hold all of them."""
    counted.add(lists)
    counted.find_anchors(lists.layer)
    counted.add_around(lists)


def _redo(pending: Pending, n: int, which: Tensor) -> None:
    """Count one rule again for some heads, a few rows at a time so that every list fits."""
    layer, ranks, is_top = pending.layer.some(which), pending.ranks[n], n == len(pending.rules)
    reach = layer.new() if is_top else pending.high[n].reach.clone()
    if ranks is not None:
        reach[which] = launches.kth_largest(layer, ranks[which // layer.z.shape[1]])
    counted = pending.high[n if not is_top else 0]
    counted = Counted.nothing(layer, counted.sizes, counted.large, reach)
    size, blocks = layer.text.size, layer.text.blocks
    # A row has at most this many pairs in one list.
    each = layer.text.tile * launches.MOST_LISTS * -(-size // launches.MOST_LISTS)
    together = max(1, min(blocks, bytes_of(LISTS, pending.memory) // (8 * each * len(which))))
    lists, best = Lists(layer, together * each), torch.full_like(pending.best[which], NO_PAIR)

    def again() -> Iterator[Lists]:
        for first in range(0, blocks, together):
            lists.collect(reach, first, min(together, blocks - first))
            yield lists

    if is_top:
        for some in again():
            best = some.best(best)
        pending.best[which] = best
        return
    for some in again():
        counted.add(some)
    counted.find_anchors(layer)
    if layer.text.types is not None:
        for some in again():
            counted.add_around(some)
    pending.high[n].put(which, counted)
