"""A layer on the device: what the kernels read of the tokens, and the vectors of its heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.compute.arrays import put
from headscope.pairs.cuda.tokens import TokenTensors, bins_of, count_all_pairs
from headscope.pairs.distances import distance_bin
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vectors import VectorSizes, read_vectors, vector_sizes

BINS = 128  # room for every bin of distance
NONE = np.iinfo(np.int32).max  # a number behind all others
SHARE_STEPS = 2.0**40  # the chance of one sentence is kept in whole numbers of one over this


def tile_of(z: Tensor, apart: bool) -> int:
    """Tokens on a side of a tile: fewer where float32 vectors would not fit the shared memory."""
    small = not apart and z.element_size() <= 2
    return 64 if small or z.shape[-1] <= 128 else 32


class TextTensors:
    """What the kernels read of the tokens of a batch, on the device.

    A row is a text. Rows are the texts of the batch, again for each layer, and all of them again
    for each setting of special tokens: (settings, layers, texts).
    """

    def __init__(
        self, tokens: TokenTensors, settings: Sequence[Special], tile: int, layers: int = 1
    ) -> None:
        size, device, texts = tokens.size, tokens.device, len(tokens.lengths)
        self.size, self.tile, self.blocks = size, tile, -(-size // tile)
        self.shape = (len(settings), layers, texts)
        self.settings = tuple(settings)
        self.rows = len(settings) * layers * texts

        def as_rows(values: Tensor) -> Tensor:
            """Values (settings or one, texts, …), again for each layer: (rows, …)."""
            more = values.shape[2:]
            own = values[:, None].expand(*self.shape, *more).reshape(self.rows, *more)
            return own.contiguous()  # of a single text, all rows would be one place in memory

        own, there = tokens.on_device, tokens.there
        ordinary = own["ordinary"] > 0  # (B, S)
        members = torch.stack([ordinary if one == "left_out" else there for one in settings])
        whole = _in_blocks(members, tile, False).all(-1)  # (settings, B, blocks)
        plain = ~_in_blocks(members & ~ordinary, tile, False).any(-1)  # (settings, B, blocks)
        told = ordinary & (own["sentences"] >= 0)
        first = _in_blocks(own["sentences"].masked_fill(~told, NONE), tile, NONE).amin(-1)
        last = _in_blocks(own["sentences"].masked_fill(~told, -1), tile, -1).amax(-1)  # (B, blocks)
        about = torch.stack([plain.int(), *(x.expand(plain.shape) for x in (first, last))], 2)
        self.kept = as_rows(members.int().masked_fill(~there, -1))
        self.whole, self.whole_run = as_rows(whole.int()), as_rows(_longest_run(whole))
        self.blocks_of = as_rows(about)
        self.order = as_rows(_repeated(own["words"], ordinary)[None])
        self.special = as_rows(_first_of(there & ~ordinary, tokens.most_special)[None])
        self.lengths = as_rows(tokens.length[None])
        every = tokens.together[:, None, None].expand(-1, *self.shape, -1)
        every = every.reshape(-1, self.rows, size).contiguous()
        named = dict(zip(tokens.on_device, every, strict=True))
        self.sentence, self.word, self.ordinary = (
            named[name] for name in ("sentences", "words", "ordinary")
        )
        self.token, self.occurrence = named["ids"], named["occurrences"]
        self.word_class = named["word_classes"]
        # (rows, K, S), where the type of each token first occurs
        self.types = None if tokens.types is None else as_rows(tokens.types[None].int())

        found = count_all_pairs(tokens, members)
        self.chance = found.chance  # of every text, for every setting
        share = (found.inside_share * SHARE_STEPS).round().long()
        self.inside_share = as_rows(share.unflatten(0, (-1, texts)))
        taking_part = np.stack([tokens.taking_part(special) for special in settings])
        self.counts = taking_part * (taking_part - 1) // 2  # (settings, B)
        self.pairs = as_rows(put(self.counts.astype(np.float64), device))
        self.bins, self.bin_members = bins_of(size, device), _bin_members(size, tile, device)
        self._heads: dict[int, Tensor] = {}

    def by_row(self, values: NDArray[np.int32]) -> Tensor:
        """Numbers (settings, texts) on the device, again for each layer: (rows,)."""
        there = put(values, self.kept.device)
        return there[:, None].expand(self.shape).reshape(self.rows).contiguous()

    def heads(self, number: int) -> Tensor:
        """The numbers of all heads, for so many a text."""
        if number not in self._heads:
            count = self.rows * number
            self._heads[number] = torch.arange(count, dtype=torch.int32, device=self.kept.device)
        return self._heads[number]


@lru_cache(maxsize=16)
def _bin_members(size: int, tile: int, device: torch.device) -> Tensor:
    """Sums at delta T + n, and below: at delta T + n - T, by bin; see `sum_kernels.add_up`."""
    at = np.arange(-(-size // tile) * tile)
    distance = np.concatenate([at, at - tile])
    real = (distance > 0) & (distance < size)
    member = np.zeros((len(distance), BINS))
    member[np.flatnonzero(real), distance_bin(np.arange(size))[distance[real]]] = 1
    return put(member, device)  # (2 blocks T, BINS)


def _in_blocks(values: Tensor, side: int, fill: int) -> Tensor:
    """Values (…, S) as (…, blocks, side)."""
    behind = (0, -values.shape[-1] % side)
    padded: Tensor = torch.nn.functional.pad(values, behind, value=fill)
    return padded.view(*values.shape[:-1], -1, side)


def _longest_run(whole: Tensor) -> Tensor:
    """From where to where the longest run of true (…, blocks) goes, (…, 2); of equals the first."""
    end = torch.arange(1, whole.shape[-1] + 1, device=whole.device)
    length = end - end.masked_fill(whole, 0).cummax(-1).values  # of the run that ends there
    longest = length.amax(-1, keepdim=True)
    to = (end * (length == longest) + (length < longest) * NONE).amin(-1, keepdim=True)
    return torch.cat([to - longest, to], -1).int()


def _repeated(words: Tensor, ordinary: Tensor) -> Tensor:
    """The ordinary tokens (B, S) whose word occurs again, by word and by position; -1 behind.

    words: (B, S), negative for none.
    """
    own, order = words.masked_fill(~ordinary | (words < 0), NONE).sort(dim=1, stable=True)
    alike = (own[:, 1:] == own[:, :-1]) & (own[:, 1:] != NONE)
    again = torch.zeros_like(ordinary)
    again[:, 1:] |= alike
    again[:, :-1] |= alike
    first = _first_of(again, again.shape[1])
    return torch.where(first < 0, -1, order.gather(1, first.long().clamp(min=0))).int()


def _first_of(marked: Tensor, number: int) -> Tensor:
    """The first so many places that are marked of each row (B, S); -1 behind the last."""
    missing, places = (~marked).byte().sort(dim=1, stable=True)
    return places.masked_fill(missing > 0, -1)[:, :number].int()


@dataclass(frozen=True, slots=True)
class Layer:
    """The vectors of a layer, which of its heads a launch is for, and what the launches share."""

    z: Tensor  # (rows, H, S, d) read vectors, or (rows of a setting, …) where settings share them
    heads: Tensor  # (n,) int32, numbers of heads, b H + h
    text: TextTensors
    largest: Tensor  # (BH,) the largest |z|, NaN where something is not finite
    shift: Tensor  # (BH,) about the mean of C
    scale: Tensor  # (BH,) one over how far C is spread, at most
    inverse: Tensor  # (heads with vectors, S) one over the lengths of vectors, for the cosine
    cosine: bool  # of vectors as they are, whose lengths are taken off their products

    @property
    def number(self) -> int:
        """How many heads there are in all, rows · H."""
        return self.text.rows * self.z.shape[1]

    @property
    def told_by(self) -> int | None:
        """Which setting tells for all what special tokens matter little to, if vectors are shared.

        That is where the similarities lie, and from where on pairs are listed; and unrelated pairs,
        which have no special token.
        """
        settings = self.text.settings
        shared = len(self.z) < self.text.rows and "left_out" in settings
        return settings.index("left_out") if shared else None

    @property
    def telling(self) -> Tensor:
        """The heads of that setting, or all."""
        heads, own = self.text.heads(self.z.shape[1]), self.told_by
        return heads if own is None else heads.view(len(self.text.settings), -1)[own]

    @property
    def behind(self) -> int:
        """How far behind a head of that setting the same head of the other one is."""
        if self.told_by is None:
            return 0
        return (1 - 2 * self.told_by) * (self.number // 2)

    def for_all(self, told: Tensor) -> Tensor:
        """What was found of the telling heads (heads, …), for the heads of every setting."""
        if self.told_by is None:
            return told
        return told.repeat(len(self.text.settings), *[1] * (told.ndim - 1))

    def most_of(self, values: Tensor) -> Tensor:
        """Of values (rows,), for each row the largest of all settings."""
        if self.told_by is None:
            return values
        settings = len(self.text.settings)
        return values.view(settings, -1).amax(0).repeat(settings)

    @property
    def vectors(self) -> tuple[Any, ...]:
        """How kernels find vectors: how many texts have some, strides, H, S, d, and lengths."""
        z, inverse = self.z, self.inverse if self.cosine else self.shift
        return (len(z), *z.stride()[:3], z.shape[1], self.text.size, z.shape[3], inverse)

    @property
    def shape(self) -> dict[str, Any]:
        """What kernels are compiled for."""
        dimensions = max(16, 1 << (self.z.shape[3] - 1).bit_length())
        few = dimensions * self.z.element_size() <= 256  # bytes of a vector: two tiles at a time
        return {
            "D": dimensions,
            "COSINE": self.cosine,
            "PRECISION": "tf32x3" if self.z.dtype == torch.float32 else "ieee",
            "num_warps": 4,
            "num_stages": 2 if few else 1,
        }

    def some(self, heads: Tensor) -> "Layer":
        """The same layer, for launches over some of its heads."""
        return replace(self, heads=heads.to(torch.int32))

    def new(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """An array with one row for each head, with anything in it."""
        return torch.empty((self.number, *shape), dtype=dtype, device=self.z.device)


def read(
    z: Tensor, text: TextTensors, reading: SimilarityReading, apart: bool
) -> tuple[Tensor, VectorSizes | None]:
    """The vectors of some layers z (layers · B, H, S, d), read, and contiguous in the last axis.

    Unless each setting has vectors apart, they are there once and as they came; their sizes are
    found with the rest.
    """
    z, settings = z[:, :, : text.size], text.shape[0]
    if not apart:
        return z if z.stride(3) == 1 else z.contiguous(), None
    members = (text.kept > 0)[:, None].expand(-1, z.shape[1], -1)  # (rows, H, S)
    real = (text.kept >= 0)[:, None, :, None]  # (rows, 1, S, 1)
    own = torch.where(real, z.repeat(settings, 1, 1, 1), 0)
    found = read_vectors(own, reading, members)
    vectors = torch.where(found.finite[..., None, None], found.vectors, torch.nan)
    sizes = vector_sizes(own, vectors, reading, members)
    lengths = torch.where(members, sizes.lengths, 0.0).flatten(0, 1)  # (rows · H, S)
    rounding = sizes.rounding.flatten(0, 1).contiguous()
    return vectors.contiguous(), VectorSizes(lengths, rounding)
