"""Where attention falls among patches or frames: on what is near, special, or silence added."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.inputs.positions import Bools, Positions

ROWS = 128  # of attention that are looked at at once


def attention_rows(seen: HeadOutputs, positions: Positions) -> Iterator[tuple[int, Tensor]]:
    """Rows of A of every head, some at a time: the first, and (heads, rows, keys).

    What comes after the last position is silence, whose rows nobody asks for.
    """
    end = int(positions.places[-1]) + 1
    for start in range(0, end, ROWS):
        yield start, seen.weights(slice(start, min(start + ROWS, end)))[0]


def mass_in_a_row(positions: Positions, seen: HeadOutputs) -> NDArray[np.float64]:
    """Σ_i of the mass on each target in a row of positions, without making A: (heads, targets)."""
    places = torch.from_numpy(positions.places)
    columns = np.stack([special_places(positions), silence_places(positions)], axis=1)
    wanted = columns[:, columns.any(axis=0)]
    near = seen.near()[0].double().cpu()
    if positions.total > len(positions):
        near[:, places[-1], 2] = 0  # what comes next is silence
    parts = [near]
    if wanted.shape[1]:
        parts.insert(0, seen.weigh(torch.from_numpy(wanted).float())[0].double().cpu())
    mass = torch.cat(parts, dim=-1)[:, places]  # (heads, positions, targets)
    found: NDArray[np.float64] = mass.sum(dim=1).numpy()
    return found


def special_places(positions: Positions) -> Bools:
    """Which positions of the model are special."""
    special = np.zeros(positions.total, dtype=bool)
    special[positions.places] = positions.special
    return special


def silence_places(positions: Positions) -> Bools:
    """Which positions of the model are of the silence that it adds."""
    silence = np.ones(positions.total, dtype=bool)
    silence[positions.places] = False
    return silence


def targets(positions: Positions) -> tuple[str, ...]:
    """What attention may fall on here; the classes of a text mean nothing."""
    if positions.grid is not None:
        near: tuple[str, ...] = ("own patch", "touching patches", "own row", "own column")
    elif positions.kind == "sound":
        near = ("previous frame", "own frame", "next frame")
    else:
        near = ("previous position", "own position", "next position")
    special = ("special positions",) if positions.special.any() else ()
    silence = ("silence added",) if positions.total > len(positions) else ()
    return (*special, *silence, *near)


def where_targets_are(positions: Positions, readers: NDArray[np.int64]) -> Bools:
    """Where each target is for some rows of attention: (targets, rows, keys of the model).

    A reader that is special stands nowhere: nothing touches it, nor is in its row.
    """
    keys = positions.total
    place = np.full(keys, -1)
    place[positions.places] = np.arange(len(positions))
    at = place[readers]
    known, special = ~silence_places(positions), special_places(positions)
    masks = []
    if positions.special.any():
        masks.append(np.broadcast_to(special, (len(readers), keys)))
    if keys > len(positions):
        masks.append(np.broadcast_to(~known, (len(readers), keys)))
    if positions.grid is not None:
        assert positions.rows is not None
        assert positions.columns is not None
        plain = ~positions.special[at][:, None] & (known & ~special)[None]
        rows, columns = (
            np.abs(one[at][:, None] - one[place][None])
            for one in (positions.rows, positions.columns)
        )
        own = plain & (rows == 0) & (columns == 0)
        touching = plain & (np.maximum(rows, columns) == 1)
        masks += [own, touching, plain & (rows == 0), plain & (columns == 0)]
    else:
        apart = np.arange(keys)[None] - readers[:, None]
        masks += [known[None] & (apart == step) for step in (-1, 0, 1)]
    found: Bools = np.stack(masks)
    return found
