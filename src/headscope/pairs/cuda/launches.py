"""The launches that add up all pairs, list the highest and find thresholds, for a layer's heads."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.pairs.cuda import list_kernels, search_kernels, sum_kernels
from headscope.pairs.cuda.layer import BINS, Layer, TextTensors
from headscope.pairs.cuda.tiles import LEVELS

BLOCK = 512  # listed pairs that a program looks at together
COLUMNS = 32  # tokens that each token is paired with in a sample
STEPS = 128  # levels above the edge that are told apart, and parts of a level
NEAR = 8192  # values that may share a part of a level with a threshold
MOST_LISTS, MOST_PROGRAMS = 1024, 2048  # of a head, and of all heads together
NO_PAIR = 2**63 - 1
# Registers a thread, for more threads at a time: what measured fastest on an H200.
ADD_UP, COLLECT = {"maxnreg": 168}, {"maxnreg": 128}


def zeros(device: torch.device, *shapes: Sequence[int]) -> list[Tensor]:
    """Several int32 arrays of zeros in one piece of memory."""
    sizes = [torch.Size(shape).numel() for shape in shapes]
    parts = torch.zeros(sum(sizes), dtype=torch.int32, device=device).split(sizes)
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def measure(z: Tensor, text: TextTensors, *, cosine: bool) -> tuple[Layer, Tensor]:
    """Look at the vectors of a layer once: where similarities lie, and lengths (BH, S)."""
    nothing = torch.empty(0, device=z.device)
    layer = Layer(z, text.heads(z.shape[1]), text, nothing, nothing, nothing, nothing, cosine)
    heads, D = layer.telling, layer.shape["D"]
    found = torch.empty(3, len(heads), device=z.device)
    lengths = torch.empty(len(heads), text.size, device=z.device)
    sum_kernels.measure[(len(heads),)](
        z,
        heads,
        text.kept,
        text.pairs,
        *found,
        lengths,
        *layer.vectors[:-1],
        T=max(16, 8192 // D),
        D=D,
        COSINE=cosine,
        num_warps=8,
    )
    inverse = torch.where(lengths > 0, 1 / lengths, 0.0) if cosine else nothing
    largest, shift, scale = (layer.for_all(own) for own in found)
    members = text.kept.repeat_interleave(z.shape[1], 0) > 0  # (BH, S)
    lengths = torch.where(members, layer.for_all(lengths), 0.0)
    seen = replace(layer, largest=largest, shift=shift, scale=scale, inverse=inverse)
    return seen, lengths


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all pairs of every head."""

    binned: Tensor  # (BH, BINS) of C - shift, by distance bin
    ends: Tensor  # (BH, 7) as `finish` writes them

    @property
    def maximum(self) -> Tensor:
        """(BH,)."""
        return self.ends[:, 3]

    @property
    def mean(self) -> Tensor:
        """(BH,), where sums are exact."""
        return self.ends[:, 5]

    @property
    def variance(self) -> Tensor:
        """(BH,), likewise."""
        return self.ends[:, 6]


def add_up(layer: Layer, *, exact: bool) -> Sums:
    """Everything that is summed over all pairs.

    exact: the extremes are the very values that are listed, which a rule compares with them; else
    settings that share the vectors share what they have in common.
    """
    text, blocks = layer.text, layer.text.blocks
    shared = layer.told_by is not None and not exact
    parts, repeats = blocks + shared, -(-text.order.shape[1] // text.tile)
    by_distance, squares = layer.new(2, blocks * text.tile), layer.new(parts)
    sizes = [2 * parts, 2 * blocks, 2 * repeats]
    extremes, related, repeated = (
        layer.new(sum(sizes)).zero_().view(-1).split([layer.number * size for size in sizes])
    )
    heads = layer.telling if shared else layer.heads
    out = (layer.shift, by_distance, squares, extremes, layer.behind, parts)
    sum_kernels.add_up[(blocks, len(heads))](
        layer.z,
        heads,
        text.kept,
        text.whole_run,
        *out,
        *layer.vectors,
        blocks,
        T=text.tile,
        SHARED=shared,
        MINIMUM=exact,
        **{**layer.shape, **ADD_UP},
    )
    if shared:
        sum_kernels.add_special[(len(heads),)](
            layer.z,
            heads,
            text.kept,
            text.special,
            *out,
            *layer.vectors,
            blocks,
            text.special.shape[1],
            T=text.tile,
            D=layer.shape["D"],
            COSINE=layer.cosine,
            num_warps=4,
        )
    heads = layer.telling  # of which related pairs are looked for
    few = {**layer.shape, "num_stages": 1}
    sum_kernels.relate[(blocks, len(heads))](
        layer.z,
        heads,
        text.kept,
        text.sentence,
        text.ordinary,
        text.blocks_of,
        layer.shift,
        related,
        *layer.vectors,
        blocks,
        T=text.tile,
        **few,
    )
    sum_kernels.repeat[(repeats, len(heads))](
        layer.z,
        heads,
        text.order,
        text.word,
        text.sentence,
        layer.shift,
        repeated,
        *layer.vectors,
        text.order.shape[1],
        T=text.tile,
        **few,
    )
    binned = by_distance.flatten(1).double() @ text.bin_members  # (BH, BINS)
    sums = Sums(binned, layer.new(7, dtype=torch.float64))
    sum_kernels.finish[(layer.number,)](
        binned,
        squares,
        related,
        repeated,
        extremes,
        layer.shift,
        text.pairs,
        sums.ends,
        layer.z.shape[1],
        blocks,
        parts,
        repeats,
        BINS=BINS,
        BLOCK=64,
        num_warps=1,
    )
    return sums


def round_up(value: Tensor) -> Tensor:
    """The smallest float32 that is not below."""
    near = value.float()
    return torch.where(near < value, torch.nextafter(near, near.new_tensor(torch.inf)), near)


@dataclass(frozen=True, slots=True)
class Edges:
    """From where on the pairs of each head are listed."""

    value: Tensor  # (BH,) float32
    level: Tensor  # (BH,) int32


def place_edges(layer: Layer, ranks: Tensor, capacity: int) -> Edges:
    """Choose edges by a sample, so that lists hold a little more than the given ranks (rows,).

    Settings that share the vectors have one edge: without special tokens, of which there are few.
    """
    text, heads = layer.text, layer.telling
    levels = torch.zeros(len(heads), LEVELS, dtype=torch.int32, device=layer.z.device)
    list_kernels.sample[(text.blocks, len(heads))](
        layer.z,
        heads,
        text.kept,
        text.lengths,
        layer.shift,
        layer.scale,
        levels,
        *layer.vectors,
        T=text.tile,
        COLUMNS=COLUMNS,
        LEVELS=LEVELS,
        **{**layer.shape, "num_stages": 1},
    )
    value = torch.empty(len(heads), device=layer.z.device)
    level = torch.empty(len(heads), dtype=torch.int32, device=layer.z.device)
    list_kernels.place_edges[(len(heads),)](
        levels,
        heads,
        layer.most_of(ranks),
        text.pairs,
        layer.most_of(text.pairs),
        layer.shift,
        layer.scale,
        value,
        level,
        capacity,
        layer.z.shape[1],
        LEVELS=LEVELS,
    )
    return Edges(layer.for_all(value), layer.for_all(level))


def strides(reach: Tensor) -> tuple[int, int]:
    """How a kernel steps through thresholds: one a head, or one a token."""
    return (1, 0) if reach.ndim == 1 else (reach.stride(0), 1)


class Lists:
    """Pairs written down for some heads, in no order; `found` may be more than there is room for.

    A head has several lists, by the sum of the two positions. Heads under several settings of
    special tokens can share lists: `under` shows those of `left_out` what is theirs.
    """

    def __init__(self, layer: Layer, capacity: int) -> None:
        number = 1
        while number < MOST_LISTS and capacity // number > 2 * BLOCK:
            number *= 2
        self.layer, self.number, self.hide = layer, number, False
        self.room = -(-capacity // number)
        shape, device = (len(layer.heads), number, self.room), layer.z.device
        self.listed = torch.empty(shape, dtype=torch.int64, device=device)
        self.found = torch.empty(shape[:2], dtype=torch.int32, device=device)
        # As many programs as there are lists, if the heads alone are few.
        self.grid = (min(number, max(8, MOST_PROGRAMS // shape[0])), shape[0])

    def under(self, layer: Layer, hide: bool) -> "Lists":
        """The same lists for other heads of the same vectors; hide: what has a special token."""
        again = copy(self)
        again.layer, again.hide = layer, hide
        return again

    def collect(
        self, reach: Tensor, first: int = 0, blocks: int | None = None, *, shared: bool = False
    ) -> None:
        """List the pairs that reach a threshold, of all rows or of some blocks of rows."""
        layer, text = self.layer, self.layer.text
        self.found.zero_()
        if blocks is None:
            blocks = text.blocks
        list_kernels.collect[(blocks, len(layer.heads))](
            layer.z,
            layer.heads,
            text.kept,
            text.whole,
            text.blocks_of,
            text.ordinary,
            reach,
            *strides(reach),
            self.found,
            self.listed,
            first,
            self.room,
            self.number - 1,
            *layer.vectors,
            T=text.tile,
            ONE=reach.ndim == 1,
            SHARED=shared,
            **{**layer.shape, **COLLECT},
        )

    def select(self, edges: Edges, ranks: Tensor, reach: Tensor, failed: Tensor) -> None:
        """Write the similarity that has a rank (B,) from above, and where it was not found."""
        layer, heads = self.layer, len(self.layer.heads)
        near = torch.empty(heads, NEAR, dtype=torch.int32, device=layer.z.device)
        steps = (heads, STEPS)
        counts, finer, near_found = zeros(layer.z.device, steps, steps, (heads,))
        lists = (self.listed, self.found, layer.heads, layer.shift, layer.scale, edges.level, ranks)
        sizes = (self.room, self.number, layer.z.shape[1])
        shape = {"HIDE": self.hide, "LEVELS": LEVELS, "STEPS": STEPS, "BLOCK": BLOCK}
        for fine in (False, True):
            search_kernels.count_steps[self.grid](
                *lists, counts, finer, *sizes, FINER=fine, **shape
            )
        search_kernels.gather[self.grid](
            *lists, counts, finer, near, near_found, failed, *sizes, NEAR=NEAR, **shape
        )
        search_kernels.pick[(heads,)](
            near,
            near_found,
            layer.heads,
            ranks,
            counts,
            finer,
            reach,
            failed,
            layer.z.shape[1],
            NEAR=NEAR,
            STEPS=STEPS,
            num_warps=8,
        )

    def overflow(self) -> Tensor:
        """Which heads have more pairs than there is room for, (heads,) int32."""
        return (self.found > self.room).any(1).int()

    def best(self, before: Tensor) -> Tensor:
        """The best of the listed pairs and those before (heads, N), as sortable numbers."""
        slot = torch.arange(self.room, device=self.found.device)
        order = self.listed.view(len(before), -1)  # (heads, lists · room)
        bits = (order >> 32).to(torch.int32)
        bits = torch.where(bits == -(2**31), 0, bits)  # no -0.0
        key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        # Falling values, then rising places.
        order = (~key.long() << 32) | (order & 0xFFFFFFFF)
        missing = (slot >= self.found[..., None]).view(len(before), -1)
        order = order.masked_fill(missing, NO_PAIR)
        return torch.cat([order, before], 1).sort(1).values[:, : before.shape[1]]


def kth_largest(layer: Layer, ranks: Tensor) -> Tensor:
    """The k-th largest similarity (n,): the largest key that k (n,) pairs reach, by two bits."""
    count, text, rounds = len(layer.heads), layer.text, 16
    counts = torch.zeros(rounds, count, 3, dtype=torch.int32, device=layer.z.device)
    for number in range(rounds):
        search_kernels.count_reaching[(text.blocks, count)](
            layer.z,
            layer.heads,
            text.kept,
            ranks,
            counts,
            number,
            *layer.vectors,
            text.blocks,
            T=text.tile,
            **layer.shape,
        )
    digits = (counts >= ranks[:, None]).sum(-1)  # (rounds, n)
    worth = 4 ** torch.arange(rounds - 1, -1, -1, device=digits.device)
    least = ((digits * worth[:, None]).sum(0) - 2**31).to(torch.int32)
    return (least ^ ((least >> 31) & 0x7FFFFFFF)).view(torch.float32)


def large_reach(lengths: Tensor, ranks: Tensor | None, heads: int) -> Tensor:
    """The product of two lengths that k pairs reach (BH,), of lengths (BH, S), falling."""
    count, size = lengths.shape
    reach = torch.full((count,), torch.inf, device=lengths.device)
    if ranks is not None:
        search_kernels.large_reach[(count,)](
            lengths, ranks, reach, heads, size, BITS=size.bit_length(), BLOCK=64, num_warps=1
        )
    return reach


def nearest_reach(layer: Layer, k: int) -> Tensor:
    """The k-th largest similarity of every token (BH, S)."""
    reach = layer.new(layer.text.size)
    text = layer.text
    search_kernels.nearest_reach[(text.blocks, len(layer.heads))](
        layer.z,
        layer.heads,
        text.kept,
        reach,
        k,
        *layer.vectors,
        text.blocks,
        T=text.tile,
        **layer.shape,
    )
    return reach
