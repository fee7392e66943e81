"""A layer on the device: what the kernels read of the tokens, and the vectors of its heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.pairs.assemble import batch_chance
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.distances import distance_bin
from headscope.pairs.tokens import PairTokens, SimilarityReading, Special
from headscope.pairs.vectors import VectorSizes, read_vectors, vector_sizes

BINS = 128  # room for every bin of distance
SHARE_STEPS = 2.0**40  # the chance of one sentence is kept in whole numbers of one over this


def tile_of(z: Tensor) -> int:
    """Tokens on a side of a tile: fewer where float32 vectors would not fit the shared memory."""
    return 32 if z.element_size() > 2 and z.shape[-1] > 128 else 64


class TextTensors:
    """What the kernels read of the tokens of a batch, on the device."""

    def __init__(
        self, batch: TokenBatch, special: Special, device: torch.device, tile: int
    ) -> None:
        size = max(int(max(batch.lengths)), 1)
        self.size, self.tile, self.blocks = size, tile, -(-size // tile)
        chance = batch_chance(batch, special)
        texts = batch.texts

        def padded(rows: Sequence[Any], fill: float, dtype: Any = np.int32) -> Any:
            out = np.full((len(batch), max(size, *(len(r) for r in rows))), fill, dtype)
            for row, values in zip(out, rows, strict=True):
                row[: len(values)] = values
            return out

        def there(values: Any) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        kept = padded([text.kept(special) for text in texts], -1)
        sentence = padded([labels(text.sentences) for text in texts], -1)
        ordinary = padded([~text.special for text in texts], 0)
        shares = [np.rint(text.inside_share * SHARE_STEPS) for text in chance]
        self.kept, self.sentence, self.ordinary = there(kept), there(sentence), there(ordinary)
        self.word = there(padded([labels(text.words) for text in texts], -1))
        self.token = there(padded([text.ids for text in texts], -1))
        self.occurrence = there(padded([text.occurrences for text in texts], -1))
        self.word_class = there(padded([text.word_classes for text in texts], 0))
        self.inside_share = there(padded(shares, 0, np.int64))
        self.lengths = there(batch.lengths.astype(np.int32))
        whole = _in_blocks(kept > 0, tile, False).all(2)
        self.whole, self.whole_run = there(whole.astype(np.int32)), there(_longest_run(whole))
        plain = _in_blocks((kept > 0) & (ordinary > 0), tile, False).all(2)
        numbers = _in_blocks(sentence, tile, -1)  # (B, blocks, tile)
        about = [plain.astype(np.int32), numbers.min(2), numbers.max(2)]
        self.blocks_of = there(np.stack(about, 1).astype(np.int32))  # (B, 3, blocks)
        again = [_repeated(text, text.kept(special)) for text in texts]
        self.repeats = max(len(order) for order in again)
        self.order = there(padded(again, -1)[:, : max(self.repeats, 1)])
        self.types = None  # (B, K, S), where the type of each token first occurs
        if batch.types is not None:
            kinds = range(len(batch.types[0]))
            rows = [padded([own[kind] for own in batch.types], -1, np.int64) for kind in kinds]
            self.types = there(np.stack(rows, 1))
        self.counts = [text.count for text in chance]
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


def _repeated(text: PairTokens, kept: Any) -> Any:
    """The ordinary tokens whose word occurs again, by word and then by position."""
    places = np.flatnonzero(kept & ~text.special & (text.words >= 0))
    words = text.words[places]
    if not len(words):
        return places.astype(np.int32)
    often = np.bincount(words)[words] > 1
    places, words = places[often], words[often]
    return places[np.argsort(words, kind="stable")].astype(np.int32)


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
