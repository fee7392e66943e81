"""One launch of each Triton kernel, with the arrays it needs, for all heads of a layer or some."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headscope.pairs import kernels, search_kernels
from headscope.pairs.layer import Layer
from headscope.pairs.tiles import BINS

BLOCK = 1024
NO_PAIR = 2**63 - 1
ADD_UP = {"num_warps": 4, "num_stages": 1}  # more stages take more registers than there are


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all pairs of every head, in scaled units."""

    binned: Tensor  # (BH, 2, D) of C - shift and its square, by distance bin
    unrelated: Tensor  # (BH, 2)
    extremes: Tensor  # (BH, 2)
    mean: Tensor  # (BH,)
    variance: Tensor  # (BH,)

    def some(self, heads: slice | Tensor) -> "Sums":
        """Some of the heads."""
        return Sums(*(getattr(self, field.name)[heads] for field in fields(self)))


def add_up(layer: Layer) -> Sums:
    """One pass over all tiles."""
    text, programs = layer.text, layer.text.blocks // 2 + 1
    real = torch.float32
    tiles = layer.new(text.blocks, 2, 2, text.tile, dtype=real)
    unrelated, extremes = layer.new(programs, 2, dtype=real), layer.new(programs, 2, dtype=real)
    tokens = (text.kept, text.sentence, text.word, text.ordinary, text.whole)
    kernels.add_up[(programs, len(layer.V))](
        layer.V,
        *tokens,
        layer.shift,
        tiles,
        unrelated,
        extremes,
        *layer.sizes,
        **{**layer.shape, **ADD_UP},
    )
    # What is below delta T + n belongs to the block diagonal before.
    exact, below = tiles[:, :, :, 0].double(), tiles[:, 1:, :, 1].double()  # (BH, blocks, 2, T)
    exact[:, :-1] += below
    by_distance = exact.transpose(1, 2).flatten(2)[..., : text.size]  # (BH, 2, S)
    binned = by_distance @ text.bins  # (BH, 2, D)
    ends = torch.stack([extremes[..., 0].amin(1), extremes[..., 1].amax(1)], 1).double()  # (BH, 2)
    count = text.pairs[layer.texts].double()  # (BH,)
    total = binned.sum(-1) / count[:, None]  # (BH, 2)
    constant = ends[:, 0] == ends[:, 1]
    mean = torch.where(constant, ends[:, 0], layer.shift + total[:, 0])
    variance = torch.where(constant, 0, total[:, 1] - total[:, 0] ** 2).clamp(min=0)
    return Sums(binned, unrelated.double().sum(1), ends, mean, variance)


def round_up(value: Tensor) -> Tensor:
    """The smallest float32 that is not below."""
    near = value.float()
    return torch.where(near < value, torch.nextafter(near, near.new_tensor(torch.inf)), near)


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted over the high pairs of one rule, for some heads."""

    reach: Tensor  # (BH,) threshold, or (BH, S) one for every token
    counters: Tensor  # (BH, 8)
    by_distance: Tensor  # (BH, S)
    taking_part: Tensor  # (BH, S)
    sums: Tensor  # (BH, 2) over related and unrelated pairs, in whole numbers of 1 / unit
    unit: Tensor  # (BH,)

    @staticmethod
    def nothing(layer: Layer, sums: Sums, reach: Tensor) -> "Counted":
        """Nothing counted yet."""
        size = layer.text.size
        # With the largest |C| and this unit, the sum over all pairs stays within 62 bits.
        bits = torch.frexp(sums.extremes.abs().amax(1)).exponent  # (BH,)
        room = (61 - 2 * size.bit_length() - bits).clamp(-100, 100)
        return Counted(
            reach=reach,
            counters=layer.new(8, dtype=torch.int64),
            by_distance=layer.new(size, dtype=torch.int32),
            taking_part=layer.new(size, dtype=torch.int32),
            sums=layer.new(2, dtype=torch.int64),
            unit=torch.exp2(room.float()),
        )

    def some(self, heads: slice | Tensor) -> "Counted":
        """Some of the heads; for a slice, the same memory."""
        return Counted(*(getattr(self, field.name)[heads] for field in fields(self)))

    def put(self, heads: Tensor, other: "Counted") -> None:
        """Replace what was counted for some heads."""
        for field in fields(self):
            getattr(self, field.name)[heads] = getattr(other, field.name)

    def add(self, lists: "Lists") -> None:
        """Count the listed pairs that reach the threshold."""
        text, layer = lists.layer.text, lists.layer
        tokens = (text.sentence, text.token, text.word, text.ordinary)
        results = (self.counters, self.by_distance, self.taking_part, self.sums, self.unit)
        chunks = min(64, -(-lists.capacity // BLOCK))
        search_kernels.count_high[(chunks, len(layer.V))](
            lists.places,
            lists.values,
            lists.found,
            self.reach,
            *strides(self.reach),
            *tokens,
            *results,
            lists.capacity,
            layer.texts,
            text.size,
            BLOCK=BLOCK,
        )


def strides(reach: Tensor) -> tuple[int, int]:
    """How a kernel steps through thresholds: one a head, or one a token."""
    return (1, 0) if reach.ndim == 1 else (reach.stride(0), 1)


class Lists:
    """Pairs written down for every head, in no order; `found` may be more than fit."""

    def __init__(self, layer: Layer, capacity: int) -> None:
        self.layer, self.capacity = layer, capacity
        shape, device = (len(layer.V), capacity), layer.V.device
        self.places = torch.empty(shape, dtype=torch.int32, device=device)
        self.values = torch.empty(shape, dtype=torch.float32, device=device)
        self.found = layer.new(dtype=torch.int32)

    def collect(self, reach: Tensor, first: int = 0, blocks: int | None = None) -> None:
        """List the pairs that reach a threshold, of all rows or of some blocks of rows."""
        self.found.zero_()
        rows = self.layer.text.blocks if blocks is None else blocks
        kernels.collect[(rows, len(self.layer.V))](
            self.layer.V,
            self.layer.text.kept,
            self.layer.text.whole,
            reach,
            *strides(reach),
            self.found,
            self.places,
            self.values,
            first,
            self.capacity,
            *self.layer.sizes,
            **{**self.layer.shape, "num_warps": 8},
        )

    def best(self, before: Tensor) -> Tensor:
        """The best of the listed pairs and those before (BH, N), as sortable numbers."""
        slot = torch.arange(self.capacity, device=self.found.device)
        bits = (self.values + 0.0).view(torch.int32)  # no -0.0
        key = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # (BH, capacity)
        order = (~key.long() << 32) | self.places.long()  # falling values, then rising places
        order = order.masked_fill(slot >= self.found[:, None], NO_PAIR)
        return torch.cat([order, before], 1).sort(1).values[:, : before.shape[1]]


def count_levels(layer: Layer, levels: Tensor) -> Tensor:
    """Count the pairs of each level (BH, BINS), for levels (BH, 2) given by low and scale."""
    counts = layer.new(layer.text.blocks, BINS, dtype=torch.int32)
    tokens = (layer.text.kept, layer.text.whole)
    kernels.count_levels[(layer.text.blocks, len(layer.V))](
        layer.V, *tokens, levels, counts, *layer.sizes, BINS=BINS, **layer.shape
    )
    return counts.sum(1)


def kth_largest(layer: Layer, ranks: Tensor) -> Tensor:
    """The k-th largest similarity (BH,), bit by bit: the largest key that k pairs reach."""
    least = layer.new(dtype=torch.int32, fill=-(2**31))
    counts = layer.new(layer.text.blocks, dtype=torch.int32)
    for bit in range(32):
        trial = (least.long() + (2**31 >> bit)).to(torch.int32)  # (BH,)
        search_kernels.count_reaching[(layer.text.blocks, len(layer.V))](
            layer.V, layer.text.kept, trial, counts, *layer.sizes, **layer.shape
        )
        least = torch.where(counts.sum(1) >= ranks, trial, least)
    return (least ^ ((least >> 31) & 0x7FFFFFFF)).view(torch.float32)


def nearest_reach(layer: Layer, k: int) -> Tensor:
    """The k-th largest similarity of every token (BH, S)."""
    reach = layer.new(layer.text.size, dtype=torch.float32)
    search_kernels.nearest_reach[(layer.text.blocks, len(layer.V))](
        layer.V, layer.text.kept, reach, k, *layer.sizes, **layer.shape
    )
    return reach


def select(lists: Lists, levels: Tensor, chosen: Tensor, ranks: Tensor) -> Tensor:
    """The value (BH,) that has a rank from above in a level of the listed values."""
    reach = lists.layer.new(dtype=torch.float32)
    search_kernels.select[(len(reach),)](
        lists.values,
        lists.found,
        levels,
        chosen,
        ranks,
        reach,
        lists.capacity,
        BINS=BINS,
        BLOCK=BLOCK,
    )
    return reach
