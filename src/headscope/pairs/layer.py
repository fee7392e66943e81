"""A layer on the device: what the kernels read of the tokens, and vectors ready for products."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.pairs import kernels
from headscope.pairs.assemble import batch_chance
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.distances import DISTANCE_BINS, distance_bin
from headscope.pairs.tiles import TILE
from headscope.pairs.tokens import Reading, Special
from headscope.pairs.vectors import read_vectors


class TextTensors:
    """What the kernels read of the tokens of a batch, on the device."""

    def __init__(
        self, batch: TokenBatch, special: Special, device: torch.device, tile: int
    ) -> None:
        size = max(int(max(batch.lengths)), 1)
        self.size, self.tile, self.blocks = size, tile, -(-size // tile)
        chance = batch_chance(batch, special)

        def padded(rows: Sequence[Any], fill: float, dtype: torch.dtype) -> Tensor:
            out = np.full((len(batch), size), fill, np.float64)
            for row, values in zip(out, rows, strict=True):
                row[: len(values)] = values
            return torch.from_numpy(out).to(device, dtype)  # (B, S)

        whole, real = torch.int32, torch.float64
        texts = batch.texts
        self.kept = padded([text.kept(special) for text in texts], -1, whole)
        self.sentence = padded([labels(text.sentences) for text in texts], -1, whole)
        self.word = padded([labels(text.words) for text in texts], -1, whole)
        self.token = padded([text.ids for text in texts], -1, whole)
        self.ordinary = padded([~text.special for text in texts], 0, whole)
        self.inside_share = padded([text.inside_share for text in chance], 0, real)
        full = torch.nn.functional.pad(self.kept, (0, self.blocks * tile - size)) > 0
        self.whole = full.view(len(batch), self.blocks, tile).all(-1).to(whole)  # (B, blocks)
        self.pairs = torch.tensor([text.count for text in chance], device=device)  # (B,)
        self.counts = [text.count for text in chance]
        bins = torch.from_numpy(distance_bin(np.arange(1, size)))
        self.bins = torch.zeros(size, DISTANCE_BINS, dtype=real)  # (S, D)
        self.bins[torch.arange(1, size), bins] = 1
        self.bins = self.bins.to(device)


def tile_of(z: Tensor, reading: Reading) -> int:
    """Tokens on a side of a tile: fewer where float32 vectors would not fit the shared memory."""
    wide = z.dtype == torch.float32 or reading != "raw"
    return TILE // 2 if wide and z.shape[-1] > 128 else TILE


@dataclass(frozen=True, slots=True)
class Layer:
    """The vectors of some heads, ready for products, and what the launches share."""

    V: Tensor  # (BH, S, d)
    texts: Tensor  # (BH,) int32, the text of each head
    text: TextTensors
    exponent: Tensor  # (BH,)
    shift: Tensor  # (BH,)
    finite: Tensor  # (BH,)

    @property
    def sizes(self) -> tuple[Tensor, int, int, int]:
        """The texts, S, d and the number of blocks, as every kernel takes them."""
        return self.texts, self.V.shape[1], self.V.shape[2], self.text.blocks

    @property
    def shape(self) -> dict[str, Any]:
        """The shapes that kernels are compiled for."""
        precision = "tf32x3" if self.V.dtype == torch.float32 else "ieee"
        dimensions = max(16, 1 << (self.V.shape[2] - 1).bit_length())
        few = dimensions * self.V.element_size() <= 256  # bytes of a vector: two tiles at a time
        return {
            "T": self.text.tile,
            "D": dimensions,
            "PRECISION": precision,
            "num_warps": 4,
            "num_stages": 2 if few else 1,
        }

    def some(self, heads: slice | Tensor) -> "Layer":
        """Some of the heads."""
        parts = (self.exponent[heads], self.shift[heads], self.finite[heads])
        return Layer(self.V[heads], self.texts[heads], self.text, *parts)

    def new(self, *shape: int, dtype: torch.dtype, fill: float = 0) -> Tensor:
        """An array with one row a head."""
        return torch.full((len(self.V), *shape), fill, dtype=dtype, device=self.V.device)


def prepare(z: Tensor, text: TextTensors, reading: Reading) -> Layer:
    """Check, scale and read the vectors of a layer (B, H, S, d)."""
    B, H, _, d = z.shape
    z = z[:, :, : text.size]
    if reading != "raw":
        members = (text.kept > 0)[:, None]  # (B, 1, S)
        real = (text.kept >= 0)[:, None, :, None]  # (B, 1, S, 1)
        read = read_vectors(torch.where(real, z, 0), reading, members.expand(B, H, -1))
        z = torch.where(read.finite[..., None, None], read.vectors, torch.nan)
    V = torch.empty(B * H, text.size, d, dtype=z.dtype, device=z.device)
    texts = torch.arange(B, dtype=torch.int32, device=z.device).repeat_interleave(H)
    exponent, shift = torch.empty_like(texts), torch.empty_like(texts, dtype=torch.float32)
    layer = Layer(V, texts, text, exponent, shift, finite := torch.empty_like(texts))
    kernels.prepare[(B * H,)](
        z,
        text.kept,
        text.pairs,
        V,
        exponent,
        shift,
        finite,
        *z.stride(),
        H,
        text.size,
        d,
        text.blocks,
        T=text.tile,
        D=layer.shape["D"],
        SCALE=z.dtype != torch.float16,
        num_warps=8,
    )
    return layer
