"""C of one head a panel at a time, as often as it is asked for, and what has to be searched in it.

A worker holds up to `PANEL` values of C: the upper triangle of a whole head up to 1,024 tokens, and
beyond that some rows of it, which are multiplied again for every pass (one for the sums, one to
count the values by level, one to collect the level that holds the threshold, one over the high
pairs, one around their anchors).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headscope.compute.threads import room
from headscope.pairs.cpu import passes

PANEL = 2**20  # values of C that a worker holds: 4 MiB
ROWS = 128  # rows multiplied at once, so that little of the lower triangle is
COLLECTED = 2**16  # values of one level that are sorted rather than counted once more


class Panels:
    """The panels of C = vectors · vectorsᵀ of one head (S, d), as often as they are asked for."""

    def __init__(self, vectors: Tensor, left_out: npt.NDArray[np.int64]) -> None:
        self.vectors, self.left_out, self.size = vectors, left_out, len(vectors)
        self.rows = self.size  # of one panel
        if self.size**2 > PANEL:
            self.rows = max(16, PANEL // self.size)
        self._tensor = room(self.rows * self.size).view(self.rows, self.size)
        self._values: npt.NDArray[np.float32] = self._tensor.numpy()
        if self.rows == self.size:
            self._multiply(0)

    def __iter__(self) -> Iterator[tuple[npt.NDArray[np.float32], int]]:
        for i0 in range(0, self.size, self.rows):
            if self.rows < self.size:
                self._multiply(i0)
            yield self._values, i0

    def _multiply(self, i0: int) -> None:
        last = min(i0 + self.rows, self.size)
        for i in range(i0, last, ROWS):
            end = min(i + ROWS, last)
            into = self._tensor[i - i0 : end - i0, i:]  # (rows, S - i)
            torch.mm(self.vectors[i:end], self.vectors[i:].T, out=into)
        if len(self.left_out):
            passes.blank(self._values, i0, self.left_out)


def nearest_reach(panels: Panels, k: int) -> npt.NDArray[np.float32]:
    """The k-th largest similarity of every token (S,); of one with fewer partners, the smallest."""
    best = np.full((panels.size, k), passes.BLANK, np.float32)  # (S, k)
    reach = best[:, -1].copy()  # (S,)
    for panel in panels:
        passes.keep_nearest(*panel, best, reach)
    return np.maximum(reach, np.nextafter(passes.BLANK, np.float32(0)))


def kth_largest(panels: Panels, ranks: Sequence[int], low: float, high: float) -> dict[int, float]:
    """The k-th largest of the values between low and high, for several k.

    Values are counted by level, evenly between low and high, and the levels that hold a wanted
    value are sorted; a level too full for that is split into levels again. Exact in any case.
    """
    if not ranks or low == high:
        return dict.fromkeys(ranks, low)
    values = np.empty(len(ranks), np.float32)
    if panels.rows == panels.size and passes.kth_of_one_panel(
        next(iter(panels))[0], low, high, np.array(ranks), COLLECTED, values
    ):
        return dict(zip(ranks, values.tolist(), strict=True))
    span = (low, high, passes.LEVELS / (high - low))
    counts = np.zeros(passes.LEVELS + 1, np.int64)
    for panel in panels:
        passes.count_levels(*panel, *span, counts)
    places = {k: passes.find_level(counts, k) for k in ranks}
    level, rank = ({k: place[n] for k, place in places.items()} for n in range(2))
    few = sorted({n for n in level.values() if counts[n] <= COLLECTED})
    found = {}
    if few:
        values = _collect(panels, few, span, counts)
        ends = dict(zip(few, np.cumsum(counts[few]), strict=True))
        found = {k: float(values[ends[n] - rank[k]]) for k, n in level.items() if n in ends}
    for n in set(level.values()).difference(few):
        edges = np.array([-passes.BLANK, passes.BLANK], np.float32)
        for panel in panels:
            passes.extremes_of_level(*panel, *span, n, edges)
        inside = [k for k in ranks if level[k] == n]
        deeper = kth_largest(panels, [rank[k] for k in inside], float(edges[0]), float(edges[1]))
        found |= {k: deeper[rank[k]] for k in inside}
    return found


def _collect(
    panels: Panels,
    levels: Sequence[int],
    span: tuple[float, float, float],
    counts: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """All values of some levels, rising."""
    wanted = np.zeros(passes.LEVELS + 1, np.bool_)
    wanted[levels] = True
    bound = passes.bound_of(levels[0], span[0], span[2])
    values, filled = np.empty(int(counts[levels].sum()), np.float32), 0
    for panel in panels:
        filled = passes.collect_levels(*panel, *span, wanted, bound, values, filled)
    values.sort()
    return values
