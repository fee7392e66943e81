"""The attention statistics on a CUDA device: two launches for all heads and texts of a layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headscope.pairs import attention_kernels as kernels
from headscope.pairs.attention import AttentionStatistics, Scores, from_sums
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.tokens import Ints
from headscope.pairs.vectors import refuse_not_finite

T = kernels.TILE


class _Texts:
    """What the kernels read of the tokens of a batch, on the device."""

    def __init__(
        self, batch: TokenBatch, classes: Sequence[Ints], number: int, device: torch.device
    ) -> None:
        texts, size = len(batch), max(int(max(batch.lengths)), 1)
        self.size, self.blocks = size, -(-size // T)
        kind, sentence = np.full((2, texts, self.blocks * T), -1, np.int32)
        rows = np.zeros((texts, number), np.int64)
        for b, (text, own) in enumerate(zip(batch.texts, classes, strict=True)):
            kind[b, : len(text)], sentence[b, : len(text)] = own, labels(text.sentences)
            rows[b] = np.bincount(own, minlength=number)
        # Two blocks may share a sentence where their ranges of sentence numbers overlap.
        numbers = sentence.reshape(texts, self.blocks, T)
        low, high = numbers.min(2), numbers.max(2)  # (B, blocks)
        near = (low[:, :, None] <= high[:, None]) & (low[:, None] <= high[:, :, None])
        member = kind[:, :size, None] == np.arange(number)  # (B, S, K)

        def there(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        self.rows = rows
        self.lengths = there(batch.lengths.astype(np.int32))
        self.classes, self.sentence = there(kind[:, :size]), there(sentence[:, :size])
        self.near, self.member = there(near.astype(np.int32)), there(member.astype(np.float32))


@dataclass(frozen=True, slots=True)
class Pending:
    """Statistics under way on the device."""

    rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]  # (B, K)
    sums: Tensor  # (B, H, K, K + 6) mass, and the sums over rows
    received: Tensor  # (B, H, S)
    layer: str | None

    def result(self) -> AttentionStatistics:
        """Wait for the numbers."""
        sums, columns = self.sums.cpu(), self.received.cpu().double().numpy()
        refuse_not_finite(sums.isfinite().all(-1).all(-1), self.layer, "queries or keys")
        K = sums.shape[2]
        mass, by_row = np.split(sums.double().numpy(), [K], axis=-1)
        return from_sums(self.rows, mass, by_row.swapaxes(2, 3), columns)


def attention_statistics(
    query: Tensor,
    key: Tensor,
    batch: TokenBatch,
    classes: Sequence[Ints],
    number_of_classes: int,
    scores: Scores,
    mask: Tensor | None,
    sinks: Tensor | None,
    layer: str | None,
) -> AttentionStatistics:
    """Sum up the attention of every head of every text, and wait for it."""
    return start(query, key, batch, classes, number_of_classes, scores, mask, sinks, layer).result()


def start(
    query: Tensor,
    key: Tensor,
    batch: TokenBatch,
    classes: Sequence[Ints],
    number_of_classes: int,
    scores: Scores,
    mask: Tensor | None = None,
    sinks: Tensor | None = None,
    layer: str | None = None,
) -> Pending:
    """Launch both kernels and return at once."""
    B, H, _, d = query.shape
    K, device = number_of_classes, query.device
    known = ("attention", str(device), K, b"".join(own.tobytes() for own in classes))
    text = batch.remember(known, lambda: _Texts(batch, classes, K, device))
    S, C = text.size, max(16, 1 << (K - 1).bit_length())
    query, key = (x if x.stride(3) == 1 else x.contiguous() for x in (query, key))
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=torch.float32).masked_fill_(~mask, -1e30)
    added = query.new_zeros(1, 1, 1, 1, dtype=torch.float32) if mask is None else mask.float()
    added = added.expand(B, H, *added.shape[2:])
    added = added if added.stride(3) == 1 or mask is None else added.contiguous()
    sink = query.new_zeros(1, dtype=torch.float32) if sinks is None else sinks.float()
    strides = (*query.stride()[:3], *key.stride()[:3], *added.stride()[:3])
    window = S if scores.window is None else scores.window
    numbers = (scores.scaling, scores.softcap or 1.0, window, H, H // key.shape[1], S, d)
    shape = {
        "T": T,
        "D": max(16, 1 << (d - 1).bit_length()),
        "CAUSAL": scores.causal,
        "WINDOW": scores.window is not None,
        "MASK": mask is not None,
        "CAP": scores.softcap is not None,
        "PRECISION": "tf32x3" if query.dtype == torch.float32 else "ieee",
        "num_warps": 4,
        "num_stages": 2 if d * query.element_size() <= 256 else 1,
    }
    normaliser = torch.zeros(B * H, S, device=device)
    by_row = torch.zeros(B * H, 5, S, device=device)
    received = torch.zeros(B * H, 2, C, S, device=device)
    both = (text.lengths, normaliser)
    kernels.rows[(text.blocks, B * H)](
        query, key, added, sink, *both, by_row, *strides, *numbers, SINK=sinks is not None, **shape
    )
    kernels.columns[(text.blocks, B * H)](
        query,
        key,
        added,
        *both,
        text.classes,
        text.sentence,
        text.near,
        received,
        *strides,
        *numbers,
        text.blocks,
        C=C,
        **shape,
    )
    received = received.view(B, H, 2, C, S)[:, :, :, :K]  # (B, H, 2, K, S)
    mass = received[:, :, 0] @ text.member[:, None]  # (B, H, K, K)
    inside = received[:, :, 1].sum(-1)[..., None]  # (B, H, K, 1)
    sums = (by_row.view(B, H, 5, S) @ text.member[:, None]).transpose(2, 3)  # (B, H, K, 5)
    return Pending(text.rows, torch.cat([mass, sums, inside], -1), received[:, :, 0].sum(2), layer)
