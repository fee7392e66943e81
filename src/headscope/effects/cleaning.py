"""Ways to take noise away from head vectors, each beside taking as much away at random.

A cleaning turns z of one layer of a batch into z without the common mode of each text, without the
mean vector of each position, or with the first few singular directions of each text alone. Its null
takes as much away in a direction that means nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import Change, HeadOutputs
from headscope.observed import ObservedModel
from headscope.units import Unit

ROOM = 2**26  # numbers that means of positions may take
FEWEST = 8  # windows, without which a position has no mean of its own


@dataclass(frozen=True)
class Cleaning:
    """One way to clean z (texts, heads, tokens, d) of a layer, 0-based, of a batch of windows."""

    name: str
    says: str
    apply: Callable[[Tensor, int, Sequence[Unit]], Tensor]

    def change(self, units: Sequence[Unit], stack: str) -> Change:
        """Put cleaned z in the place of z, so that later layers read what is left."""

        def change(outputs: HeadOutputs) -> Tensor | None:
            if outputs.site.stack != stack:
                return None
            return self.apply(outputs.z, outputs.site.layer, units)

        return change


class PositionMeans:
    """The mean of z at each position, from the windows of one half of the documents each.

    A text is cleaned by the mean of the half that it is not in, so nothing of it is in that mean.
    Positions that fewer than eight windows of a half reach share one mean, and so do those beyond
    the first `reach`, for which there is no room.
    """

    def __init__(self, scope: ObservedModel, longest: int | None) -> None:
        shape = scope.shape
        layers = shape.numbers[-1]  # those without heads too: a call says which layer it is of
        room = ROOM // (2 * layers * shape.heads * shape.head_size)
        self.reach = max(1, min(longest or room, room))
        size = (2, layers, shape.heads, self.reach + 1, shape.head_size)
        self.sums = torch.zeros(size)  # the last place is for all that is beyond
        self.tokens = torch.zeros(2, self.reach + 1)
        self.scope = scope

    def add(self, units: Sequence[Unit], ids: Tensor, mask: Tensor | None) -> None:
        """Take in a batch of windows, as the model reads them."""

        def observe(seen: HeadOutputs) -> None:
            if seen.site.stack != self.scope.shape.stack:
                return
            for row, unit in enumerate(units):
                own = seen.z[row, :, : len(unit)].float().cpu()  # (heads, tokens, d)
                sums = self.sums[half(unit), seen.site.layer]  # (heads, reach + 1, d)
                near = own[:, : self.reach]
                sums[:, : near.shape[1]] += near
                sums[:, self.reach] += own[:, self.reach :].sum(1)

        self.scope.observe_batch(ids, mask, observe)
        for unit in units:
            self.tokens[half(unit), : min(len(unit), self.reach)] += 1
            self.tokens[half(unit), self.reach] += max(len(unit) - self.reach, 0)

    def of(self, unit: Unit, layer: int) -> Tensor:
        """The mean at each position of a window: (heads, tokens, d)."""
        other = 1 - half(unit)
        tokens = self.tokens[other]  # (reach + 1,)
        known = int((tokens[: self.reach] >= FEWEST).sum())  # later ones are reached less
        sums = self.sums[other, layer]  # (heads, reach + 1, d)
        beyond = sums[:, known:].sum(1) / tokens[known:].sum().clamp(min=1)  # (heads, d)
        found = beyond[:, None].expand(-1, len(unit), -1).clone()
        own = min(known, len(unit))
        found[:, :own] = sums[:, :own] / tokens[:own, None]
        return found

    def everywhere(self, unit: Unit, layer: int) -> Tensor:
        """The mean over all tokens of the other half: (heads, 1, d)."""
        other = 1 - half(unit)
        return self.sums[other, layer].sum(1, keepdim=True) / self.tokens[other].sum().clamp(min=1)


def half(unit: Unit) -> int:
    """In which half of the documents a window is."""
    return unit.identity[0] & 1


LEFT = ", corpus mean left"


def common_mode(
    seed: int = 0, *, left: PositionMeans | None = None, random: bool = False
) -> Cleaning:
    """Take away the mean vector of each text; or, at random, a vector as long.

    With `left`, only what it is beyond the mean of all texts, which a model's bias could make up.
    """

    def one(z: Tensor, layer: int, unit: Unit) -> Tensor:
        mean = z.mean(1, keepdim=True)  # (heads, 1, d)
        if left is not None:
            mean = mean - left.everywhere(unit, layer).to(z)
        if random:
            turned = _directions(unit, seed, layer, z.shape, 1).mT.to(z.device)
            mean = turned * mean.norm(dim=-1, keepdim=True)
        return z - mean

    says = "without the mean vector of each text"
    if left is not None:
        return Cleaning(f"common mode{LEFT}", f"{says} beyond that of all", _each(one))
    return Cleaning("common mode", says, _each(one))


def positions(
    means: PositionMeans, seed: int = 0, *, left: bool = False, random: bool = False
) -> Cleaning:
    """Take away the mean vector of each position; or, at random, those of other positions.

    With `left`, only what it is beyond the mean of all positions.
    """

    def one(z: Tensor, layer: int, unit: Unit) -> Tensor:
        taken = means.of(unit, layer)
        if left:
            taken = taken - means.everywhere(unit, layer)
        if random:
            order = unit.random(seed, f"positions {layer}").permutation(len(unit))
            taken = taken[:, torch.from_numpy(order)]
        return z - taken.to(z.device)

    says = "without the mean vector of each position"
    if left:
        return Cleaning(f"position means{LEFT}", f"{says} beyond that of all", _each(one))
    return Cleaning("position means", says, _each(one))


def directions(kept: int, seed: int = 0, *, random: bool = False) -> Cleaning:
    """Keep the first singular directions of Z of each text alone; or, at random, any as many."""

    def one(z: Tensor, layer: int, unit: Unit) -> Tensor:
        if random:
            basis = _directions(unit, seed, layer, z.shape, kept).to(z.device)
        else:
            basis = torch.linalg.eigh(z.mT @ z).eigenvectors[..., -kept:]  # (heads, d, kept)
        return z @ basis @ basis.mT

    which = "direction alone" if kept == 1 else f"{kept} directions alone"
    says = f"the first singular {which}, of Z of each text"
    return Cleaning(f"first {which}", says, _each(one))


def _each(
    clean: Callable[[Tensor, int, Unit], Tensor],
) -> Callable[[Tensor, int, Sequence[Unit]], Tensor]:
    """Clean each text of a batch by itself, without what is padded, in float64."""

    def apply(z: Tensor, layer: int, units: Sequence[Unit]) -> Tensor:
        cleaned = z.clone()  # (texts, heads, tokens, d)
        # Not every device has float64.
        where = z.device if z.device.type in ("cpu", "cuda") else torch.device("cpu")
        for row, unit in enumerate(units):
            own = clean(z[row, :, : len(unit)].to(where).double(), layer, unit)
            cleaned[row, :, : len(unit)] = own.to(z)
        return cleaned

    return apply


def _directions(unit: Unit, seed: int, layer: int, shape: Sequence[int], number: int) -> Tensor:
    """Random orthonormal directions of each head, of this text and layer: (heads, d, number)."""
    drawn: NDArray[np.float64] = unit.random(seed, f"directions {layer}").standard_normal(
        (shape[0], shape[2], number)
    )
    found: Tensor = torch.linalg.qr(torch.from_numpy(drawn)).Q
    return found
