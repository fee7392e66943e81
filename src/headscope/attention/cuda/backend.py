"""The attention statistics on a CUDA device: a launch or two for all heads and texts of a layer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headscope.attention.cuda import kernels
from headscope.attention.statistics import ROW_SUMS, AttentionStatistics, Scores, from_sums, joined
from headscope.compute.arrays import Array, put
from headscope.compute.pinned import start_to_host, to_host
from headscope.pairs.batch import TokenBatch
from headscope.pairs.tokens import Ints
from headscope.pairs.vectors import refuse_not_finite

ROWS = 64  # tokens in a block of rows
COLUMN_STEPS = 2.0**32  # columns are summed in whole numbers of one over this


class _Texts:
    """What the kernels read of the tokens of a batch, on the device."""

    def __init__(
        self,
        batch: TokenBatch,
        classes: Sequence[Ints],
        number: int,
        device: torch.device,
        keys: int,  # in a block
    ) -> None:
        texts, size = len(batch), max(int(max(batch.lengths)), 1)
        self.size, self.blocks = size, -(-size // keys)
        text_of = np.repeat(np.arange(texts), batch.lengths)
        of_rows = text_of * number + np.concatenate(classes)
        self.rows = np.bincount(of_rows, minlength=texts * number).reshape(texts, number)
        found = np.full((2, texts, self.blocks * keys), -1, np.int32)
        for own, kind, text in zip(found.swapaxes(0, 1), classes, batch.texts, strict=True):
            own[0, : len(kind)], own[1, : len(kind)] = kind, text.sentences
        self.lengths = put(batch.lengths.astype(np.int32), device)
        kinds, sentence = put(found, device)
        place = torch.arange(self.blocks * keys, dtype=torch.int32, device=device)
        # What is in no sentence is in none of another token.
        alone = (sentence < 0) & (place < self.lengths[:, None])
        sentence = torch.where(alone, -2 - place, sentence)
        numbers = sentence.view(texts, self.blocks, keys)
        self.low, self.high = numbers.amin(2), numbers.amax(2)  # (B, blocks)
        self.classes, self.sentence = torch.stack([kinds, sentence])[:, :, :size].contiguous()
        columns = torch.arange(max(16, 1 << (number - 1).bit_length()), device=device)
        self.members = (self.classes[..., None] == columns).half()  # (B, S, C)


@dataclass(frozen=True, slots=True)
class Pending:
    """Statistics under way on the device."""

    rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]  # (B, K)
    sums: Tensor  # (B, H, C, 2 C) by class of the row: mass by class, and the sums over rows
    columns: Tensor  # (B, H, S) in whole numbers of 1 / COLUMN_STEPS
    layer: str | None

    def __call__(self) -> AttentionStatistics:
        """Wait for the numbers, on the host."""
        sums, columns = to_host(self._numbers())
        return self._named(
            sums.astype(np.float64), columns.astype(np.float64), np.isfinite(sums).all((2, 3))
        )

    def _numbers(self) -> list[Tensor]:
        """Sums (B, H, K, K + 6), by class and over rows, and columns (B, H, S)."""
        return _numbers(self.sums, self.columns, self.rows.shape[1])

    def _named(
        self, sums: Array, columns: Array, finite: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    ) -> AttentionStatistics:
        refuse_not_finite(torch.from_numpy(finite), self.layer, "queries or keys")
        K = self.rows.shape[1]
        return from_sums(self.rows, sums[..., :K], sums[..., K:].swapaxes(2, 3), columns)


def _numbers(sums: Tensor, columns: Tensor, K: int) -> list[Tensor]:
    C = sums.shape[-2]
    own = torch.cat([sums[..., :K, :K], sums[..., :K, C : C + len(ROW_SUMS)]], -1)
    return [own, columns.float() / COLUMN_STEPS]


def left_on_device(layers: Sequence[Pending]) -> Callable[[], AttentionStatistics]:
    """The statistics of several layers of the same texts as tensors (B, layers, H, …)."""
    device, rows = layers[0].sums.device, layers[0].rows
    B, H, K = *layers[0].sums.shape[:2], rows.shape[1]
    apart = zip(*((own.sums.to(device), own.columns.to(device)) for own in layers), strict=True)
    stacked, columns = (torch.stack(parts, 1) for parts in apart)
    sums, columns = _numbers(stacked, columns, K)
    known = start_to_host(sums.isfinite().flatten(3).all(3))  # (B, layers, H)

    def result() -> AttentionStatistics:
        finite = known()
        if not finite.all():
            for number, own in enumerate(layers):
                found = torch.from_numpy(finite[:, number])
                refuse_not_finite(found, own.layer, "queries or keys")
        mass: Array = sums[..., :K].flatten(1, 2).double()  # layer after layer
        by_row: Array = sums[..., K:].flatten(1, 2).swapaxes(2, 3).double()
        received: Array = columns.flatten(1, 2).double()
        named = from_sums(rows, mass, by_row, received)
        return joined([named], lambda found: found[0].view(B, len(layers), H, *found[0].shape[2:]))

    return result


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
    normaliser: Tensor | None = None,
) -> Pending:
    """Launch the kernels and return at once; with a normaliser (B, H, S), one of them."""
    B, H, _, d = query.shape
    K, device = number_of_classes, query.device
    fine, few = query.element_size() > 2, d * query.element_size() <= 256
    keys = 64 if few else 32  # tokens in a block
    known = ("attention", str(device), K, keys, id(classes))
    # With the classes themselves, so that their id stays theirs.
    _, text = batch.remember(known, lambda: (classes, _Texts(batch, classes, K, device, keys)))
    S, C = text.size, text.members.shape[2]
    query, key = (x if x.stride(3) == 1 else x.contiguous() for x in (query, key))
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=torch.float32).masked_fill_(~mask, -1e30)
    added = text.lengths if mask is None else mask.float().expand(B, H, *mask.shape[2:])
    added = added if mask is None or added.stride(3) == 1 else added.contiguous()
    steps = (0, 0, 0) if mask is None else added.stride()[:3]
    strides = (*query.stride()[:3], *key.stride()[:3], *steps)
    window = S if scores.window is None else scores.window
    numbers = (scores.scaling, scores.softcap or 1.0, window, H, H // key.shape[1], S, d)
    shape = {
        "ROWS": ROWS,
        "T": keys,
        "D": max(16, 1 << (d - 1).bit_length()),
        "CAUSAL": scores.causal,
        "WINDOW": scores.window is not None,
        "MASK": mask is not None,
        "CAP": scores.softcap is not None,
        "PRECISION": "tf32x3" if fine else "ieee",
        "num_warps": 4,
        "num_stages": 2 if few else 1,
    }
    grid = (-(-S // ROWS), B * H)
    unit = 1 / math.log(2)
    # A normaliser of the model's own includes padding, if there was any.
    if normaliser is None or min(batch.lengths) < query.shape[2]:
        normaliser, unit = torch.empty(B, H, S, device=device), 1.0
        sink = text.lengths if sinks is None else sinks.float()
        kernels.normalise[grid](
            query,
            key,
            added,
            sink,
            text.lengths,
            normaliser,
            *strides,
            *numbers,
            SINK=sinks is not None,
            **shape,
        )
    sums = torch.empty(B, H, grid[0], C, 2 * C, device=device)
    columns = torch.zeros(B, H, S, dtype=torch.int64, device=device)
    kernels.add_weights[grid](
        query,
        key,
        added,
        text.lengths,
        normaliser.contiguous(),
        text.classes,
        text.members,
        text.sentence,
        text.low,
        text.high,
        sums,
        columns,
        unit,
        *strides,
        *numbers,
        text.blocks,
        C=C,
        FINE=fine,
        **shape,
        maxnreg=None if fine else 128,  # for more threads at a time
    )
    return Pending(text.rows, sums.sum(2), columns, layer)
