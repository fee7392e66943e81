"""The results of a device in a few arrays, to be brought over at once, and by name again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headscope.compute import arrays
from headscope.compute.arrays import Array
from headscope.pairs.assemble import COUNTERS, HighNumbers, PairNumbers
from headscope.pairs.cuda.launches import NO_PAIR
from headscope.pairs.cuda.layer import BINS, SHARE_STEPS
from headscope.pairs.distances import DISTANCE_BINS
from headscope.pairs.statistics import Anchors, TopPairs

if TYPE_CHECKING:
    from headscope.pairs.cuda.backend import Pending


def packed(pending: "Pending") -> list[Tensor]:
    """Everything the host wants, most of it as float64: counts are whole numbers below 2**53."""
    layer, sums = pending.layer, pending.sums
    packed = [layer.shift[:, None], sums.binned, sums.ends[:, :4]]
    for counted in pending.high:
        reach = counted.reach if counted.reach.ndim == 1 else counted.reach[:, 0]
        packed += [reach[:, None], counted.counters, counted.by_bin, counted.expected[:, None]]
        packed += [counted.anchors, counted.around]
    flat = torch.cat([part.double() for part in packed], 1)  # (BH, …)
    return [flat, *(counted.taking_part for counted in pending.high), pending.best]


def unpacked(pending: "Pending", found: Sequence[Array]) -> PairNumbers:
    """Give the numbers of `packed` their names, on the host or where they are."""
    flat, *taking_part, best = found
    flat, at = pending.by_text(flat, flat.shape[1]), 0  # (settings · texts, layers · H, …)

    def take(*more: int) -> Array:
        nonlocal at
        begin, at = at, at + int(np.prod(more, dtype=int))
        return flat[..., begin:at].reshape(*flat.shape[:2], *more)

    shift, binned, ends = take(), take(BINS)[..., :DISTANCE_BINS], take(4)
    high, kinds = [], pending.high[0].around.shape[1] if pending.high else 0
    for taken in taking_part:
        reach, counters, by_bin, expected = take(), take(COUNTERS), take(BINS), take()
        anchors = _anchors(take(kinds), take(kinds)) if kinds else None
        high.append(
            HighNumbers(
                reach=reach,
                counters=arrays.whole(counters),
                by_distance=arrays.whole(by_bin[..., :DISTANCE_BINS]),
                expected=expected / SHARE_STEPS,
                taking_part=pending.by_text(taken, taken.shape[1]),
                anchors=anchors,
            )
        )
    exponent, size = pending.exponent, pending.layer.text.size
    square = ends[..., 2]
    unrelated = arrays.stack([binned.sum(-1), square], -1) - ends[..., :2]
    if (told_by := pending.layer.told_by) is not None:
        own = unrelated.reshape(len(pending.settings), -1, *unrelated.shape[1:])[told_by]
        unrelated = arrays.stack([own] * len(pending.settings), 0).reshape(unrelated.shape)
    return PairNumbers(
        exponent=None if exponent is None else pending.by_text(exponent.numpy()),
        shift=shift,
        sums=binned,
        square=square,
        unrelated=unrelated,
        highest=ends[..., 3],
        high=tuple(high),
        top=_top_pairs(best, size, flat.shape[:2]) if best.shape[1] else None,
    )


def _anchors(leaders: Array, around: Array) -> Anchors:
    """Read places and ends from the sortable numbers of `Counted.anchors`."""
    ends = arrays.whole(leaders) // 2**16
    place = 65_535 - arrays.whole(leaders) % 2**16
    return Anchors(arrays.library(ends).where(ends > 0, place, -1), ends, arrays.whole(around))


def _top_pairs(best: npt.NDArray[np.int64], size: int, shape: tuple[int, int]) -> TopPairs:
    """Read positions and values from the sortable numbers of `Lists.best`."""
    order = best.reshape(*shape, -1)  # (B, H, N)
    missing = order == NO_PAIR
    place = order & 0xFFFFFFFF
    key = (~(order >> 32)).astype(np.int32)
    value = (key ^ ((key >> 31) & 0x7FFFFFFF)).view(np.float32).astype(np.float64)
    return TopPairs(
        first=np.where(missing, -1, place // size),
        second=np.where(missing, -1, place % size),
        value=np.where(missing, np.nan, value),
    )
