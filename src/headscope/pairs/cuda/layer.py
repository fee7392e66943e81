"""A layer on the device: what the kernels read of the tokens, and the vectors of its heads."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.compute.arrays import put
from headscope.pairs.cuda.tokens import TokenTensors, count_all_pairs, each_of
from headscope.pairs.distances import distance_bin
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vectors import VectorSizes, read_vectors, vector_sizes

BINS = 128  # room for every bin of distance
SHARE_STEPS = 2.0**40  # the chance of one sentence is kept in whole numbers of one over this


def tile_of(z: Tensor, reading: SimilarityReading) -> int:
    """Tokens on a side of a tile: fewer where float32 vectors would not fit the shared memory."""
    small = reading == "raw" and z.element_size() <= 2
    return 64 if small or z.shape[-1] <= 128 else 32


OF_TOKENS = (
    "kept",
    "sentence",
    "ordinary",
    "word",
    "token",
    "occurrence",
    "word_class",
    "inside_share",
    "lengths",
    "whole",
    "whole_run",
    "blocks_of",
    "order",
    "types",
    "pairs",
)  # of `TextTensors`, with a row for each text


class TextTensors:
    """What the kernels read of the tokens of a batch, on the device."""

    def __init__(self, tokens: TokenTensors, special: Special, tile: int) -> None:
        size, device = tokens.size, tokens.device
        self.size, self.tile, self.blocks = size, tile, -(-size // tile)
        every = count_all_pairs(tokens, special)
        self.chance = every.chance  # of each text
        self.inside_share = (every.inside_share * SHARE_STEPS).round().long()

        def there(values: Any) -> Tensor:
            return put(np.ascontiguousarray(values), device)

        own, members = tokens.host, tokens.kept(special)
        kept = np.where(tokens.there, members, -1).astype(np.int32)
        self.kept, self.ordinary = there(kept), tokens.on_device["ordinary"]
        self.sentence, self.word = tokens.on_device["sentences"], tokens.on_device["words"]
        self.token, self.occurrence = tokens.on_device["ids"], tokens.on_device["occurrences"]
        self.word_class = tokens.on_device["word_classes"]
        self.lengths = there(tokens.lengths.astype(np.int32))
        whole = _in_blocks(members, tile, False).all(2)
        self.whole, self.whole_run = there(whole.astype(np.int32)), there(_longest_run(whole))
        plain = _in_blocks(members & (own["ordinary"] > 0), tile, False).all(2)
        numbers = _in_blocks(own["sentences"], tile, -1)  # (B, blocks, tile)
        about = [plain.astype(np.int32), numbers.min(2), numbers.max(2)]
        self.blocks_of = there(np.stack(about, 1).astype(np.int32))  # (B, 3, blocks)
        order = _repeated(own["words"], members & (own["ordinary"] > 0))
        self.repeats, self.order = int((order >= 0).sum(1).max()), there(order)
        self.types = tokens.types  # (B, K, S), where the type of each token first occurs
        taking_part = members.sum(1)
        self.counts = (taking_part * (taking_part - 1) // 2).tolist()
        self.pairs = there(np.array(self.counts, np.float64))  # (B,)
        bins = distance_bin(np.arange(size)).astype(np.int32)  # (S,)
        self.bins = there(bins)
        # Sums at delta T + n, and below: at delta T + n - T, by bin; see `sum_kernels.add_up`.
        at = np.arange(self.blocks * tile)
        distance = np.concatenate([at, at - tile])
        real = (distance > 0) & (distance < size)
        member = np.zeros((len(distance), BINS))
        member[np.flatnonzero(real), bins[distance[real]]] = 1
        self.bin_members = there(member)  # (2 blocks T, BINS)
        self._heads: dict[int, Tensor] = {}

    def times(self, layers: int) -> "TextTensors":
        """The same texts for each of several layers, one layer after the other."""
        again = copy(self)
        for name in OF_TOKENS:
            value = getattr(self, name)
            if value is not None:
                setattr(again, name, value.repeat(layers, *[1] * (value.ndim - 1)))
        again.chance = each_of(self.chance, lambda own: own.repeat(layers, *[1] * (own.ndim - 1)))
        again.counts, again._heads = self.counts * layers, {}
        return again

    def heads(self, number: int) -> Tensor:
        """The numbers of all heads, for so many a text."""
        if number not in self._heads:
            count = self.kept.shape[0] * number
            self._heads[number] = torch.arange(count, dtype=torch.int32, device=self.kept.device)
        return self._heads[number]


def _in_blocks(values: Any, side: int, fill: int) -> Any:
    """Values (B, S) as (B, blocks, side)."""
    texts, size = values.shape
    behind = -size % side
    return np.pad(values, ((0, 0), (0, behind)), constant_values=fill).reshape(texts, -1, side)


def _longest_run(whole: Any) -> Any:
    """From where to where the longest run of true (B, blocks) goes, (B, 2)."""
    texts, blocks = whole.shape
    length, best = np.zeros(texts, np.int32), np.zeros((texts, 2), np.int32)
    for end in range(1, blocks + 1):
        length = np.where(whole[:, end - 1], length + 1, 0)
        longer = length > best[:, 1] - best[:, 0]
        best[longer] = np.stack([end - length, np.full(texts, end)], 1)[longer]
    return best


def _repeated(words: Any, ordinary: Any) -> Any:
    """The ordinary tokens whose word occurs again, by word and then by position; -1 behind.

    words: (B, S), negative for none; the result has as many columns as the text with most needs.
    """
    none = np.iinfo(np.int32).max
    own = np.where(ordinary & (words >= 0), words, none)
    order = np.argsort(own, axis=1, kind="stable")
    sorted_words = np.take_along_axis(own, order, 1)
    alike = (sorted_words[:, 1:] == sorted_words[:, :-1]) & (sorted_words[:, 1:] != none)
    again = np.zeros(own.shape, bool)
    again[:, 1:] |= alike
    again[:, :-1] |= alike
    first = np.argsort(~again, axis=1, kind="stable")[:, : max(int(again.sum(1).max()), 1)]
    found = np.where(np.take_along_axis(again, first, 1), np.take_along_axis(order, first, 1), -1)
    return found.astype(np.int32)


@dataclass(frozen=True, slots=True)
class Layer:
    """The vectors of a layer, which of its heads a launch is for, and what the launches share."""

    z: Tensor  # (B, H, S, d) read vectors; the last dimension is contiguous
    heads: Tensor  # (n,) int32, numbers of heads, b H + h
    text: TextTensors
    largest: Tensor  # (BH,) the largest |z|, NaN where something is not finite
    shift: Tensor  # (BH,) about the mean of C
    scale: Tensor  # (BH,) one over how far C is spread, at most

    @property
    def number(self) -> int:
        """How many heads there are in all, B · H."""
        return self.z.shape[0] * self.z.shape[1]

    @property
    def vectors(self) -> tuple[int, ...]:
        """How kernels find vectors: strides, then H, S and d."""
        return (*self.z.stride()[:3], self.z.shape[1], self.text.size, self.z.shape[3])

    @property
    def shape(self) -> dict[str, Any]:
        """What kernels are compiled for."""
        dimensions = max(16, 1 << (self.z.shape[3] - 1).bit_length())
        few = dimensions * self.z.element_size() <= 256  # bytes of a vector: two tiles at a time
        return {
            "D": dimensions,
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


def read(z: Tensor, text: TextTensors, reading: SimilarityReading) -> tuple[Tensor, VectorSizes]:
    """The read vectors (B, H, S, d) of a layer, in memory as the kernels want them, and sizes."""
    z = z[:, :, : text.size]
    members = (text.kept > 0)[:, None].expand(z.shape[:3])  # (B, H, S)
    real = (text.kept >= 0)[:, None, :, None]  # (B, 1, S, 1)
    vectors = z
    if reading != "raw":
        own = torch.where(real, z, 0)
        found = read_vectors(own, reading, members)
        vectors = torch.where(found.finite[..., None, None], found.vectors, torch.nan)
        sizes = vector_sizes(own, vectors, reading, members)
    else:
        sizes = vector_sizes(z, z, reading, members)
    lengths = torch.where(members, sizes.lengths, 0.0).flatten(0, 1)  # (BH, S)
    rounding = sizes.rounding.flatten(0, 1).contiguous()
    sizes = VectorSizes(lengths, rounding)
    return vectors if vectors.stride(3) == 1 else vectors.contiguous(), sizes
